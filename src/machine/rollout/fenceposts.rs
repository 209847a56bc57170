//! The limits of a rollout, in Machines.

use super::goal::RolloutGoal;
use crate::machine::count_or_percent::CountOrPercent;

/// Limits of a rollout, in Machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fenceposts {
    /// Machines above `replicas`.
    pub surge: u32,
    /// Machines below `replicas` that may be unavailable; at most `replicas`.
    pub unavailable: u32,
}

impl Fenceposts {
    /// Kubernetes `ResolveFenceposts`: a percentage of `maxSurge` is rounded up, one of `maxUnavailable` down, and if both
    /// result in 0, one Machine may be unavailable, as nothing could be replaced otherwise.
    pub fn resolve(replicas: u32, max_surge: CountOrPercent, max_unavailable: CountOrPercent) -> Self {
        let surge = max_surge.rounded_up(replicas);
        let unavailable = max_unavailable.rounded_down(replicas);
        let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
        Self { surge, unavailable: unavailable.min(replicas) }
    }

    pub(super) fn of(goal: &RolloutGoal) -> Self {
        Self::resolve(goal.replicas, goal.max_surge, goal.max_unavailable)
    }

    /// Machines that must stay available.
    pub fn min_available(self, replicas: u32) -> u32 {
        replicas.saturating_sub(self.unavailable)
    }

    /// Machines that may exist at the same time. No surge without replicas: nothing is created to scale to 0.
    pub fn most(self, replicas: u32) -> u32 {
        if replicas == 0 { 0 } else { replicas.saturating_add(self.surge) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_resolved_as_by_kubernetes() {
        for (replicas, surge, unavailable, expected) in [
            (10, "1", "0", (1, 0)),
            (10, "0", "0", (0, 1)),
            (10, "0%", "0%", (0, 1)),
            (10, "25%", "25%", (3, 2)),
            (3, "25%", "25%", (1, 0)),
            (3, "0", "25%", (0, 1)),
            (3, "35%", "0", (2, 0)),
            (1, "100%", "100%", (1, 1)),
            (5, "0", "10", (0, 5)),
            (5, "10", "0", (10, 0)),
            (4, "0", "50%", (0, 2)),
            (5, "0", "50%", (0, 2)),
            (5, "50%", "0", (3, 0)),
            // Nothing can be unavailable of nothing.
            (0, "0", "0", (0, 0)),
            (0, "1", "1", (1, 0)),
            (0, "25%", "25%", (0, 0)),
        ] {
            let got = Fenceposts::resolve(replicas, surge.parse().unwrap(), unavailable.parse().unwrap());
            assert_eq!((got.surge, got.unavailable), expected, "{replicas}, {surge}, {unavailable}");
        }
    }

    #[test]
    fn nothing_is_created_to_scale_to_zero() {
        let one = CountOrPercent::Count(1);
        assert_eq!(Fenceposts::resolve(0, one, one).most(0), 0);
        assert_eq!(Fenceposts::resolve(3, one, one).most(3), 4);
        assert_eq!(Fenceposts::resolve(3, one, one).min_available(3), 2);
    }
}
