//! The size of one machine set while a plan is made, and what reducing it costs.

use jiff::Timestamp;

use super::goal::RolloutGoal;
use super::observed_set::ObservedSet;

/// Counts of one set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SetSize {
    /// What is written: `spec.replicas`; 0 for a set that is being deleted.
    pub(super) written: u32,
    /// What this plan writes.
    pub(super) target: u32,
    /// Machines that are not being deleted.
    pub(super) live: u32,
    /// Machines that are being deleted.
    pub(super) deleting: u32,
    /// Live Machines that are available.
    available: u32,
    /// Available Machines that a person or the autoscaler has marked, and which therefore go first.
    marked_available: u32,
    /// `max-replicas` when it was last scaled.
    pub(super) most: Option<u32>,
    /// The set itself is being deleted: its size is out of our hands.
    pub(super) is_going: bool,
}

fn count<T>(items: impl Iterator<Item = T>) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}

impl SetSize {
    pub(super) fn of(set: &ObservedSet, goal: &RolloutGoal, now: Timestamp) -> Self {
        let written = if set.deleting { 0 } else { set.replicas };
        let live = || set.machines.iter().filter(|machine| !machine.deleting);
        let available = || live().filter(|machine| machine.is_available(goal.min_ready, now));
        Self {
            written,
            target: written,
            live: count(live()),
            deleting: count(set.machines.iter().filter(|machine| machine.deleting)),
            available: count(available()),
            marked_available: count(available().filter(|machine| machine.marked)),
            most: set.most,
            is_going: set.deleting,
        }
    }

    /// Of a set that does not exist yet.
    pub(super) fn of_new() -> Self {
        Self::default()
    }

    /// Machines that hold a host, will hold one, or still hold one. What is written counts before it is carried out, in
    /// both directions.
    pub(super) fn occupied(&self) -> u32 {
        self.written.max(self.live).saturating_add(self.deleting)
    }

    /// Machines that the set has yet to delete.
    pub(super) fn pending(&self) -> u32 {
        self.live.saturating_sub(self.written)
    }

    /// Machines that stay available in any case once the written size is reached: which Machines the set chooses was
    /// decided on what it saw, so each may be an available one.
    pub(super) fn surely_available(&self) -> u32 {
        self.available.saturating_sub(self.pending())
    }

    /// Of [`Self::surely_available`], the Machines that may be lost if the size is reduced by `count` more. The set deletes
    /// marked Machines first, and what is not available before what is; replicas without a Machine cost nothing.
    pub(super) fn cost(&self, count: u32) -> u32 {
        self.surely_available().min(self.loss(count, self.unavailable()))
    }

    /// Replicas that are not available, those without a Machine included.
    fn unavailable(&self) -> u32 {
        self.written.max(self.live) - self.available
    }

    fn loss(&self, count: u32, unavailable: u32) -> u32 {
        let marked = count.min(self.marked_available);
        marked + count.saturating_sub(self.marked_available).saturating_sub(unavailable)
    }

    /// The largest reduction, at most `limit`, that costs at most `budget` available Machines. Without a budget, too few
    /// may be available already: then only what is lost in no case goes, also if the pending deletions have hit nothing
    /// but Machines that are not available.
    pub(super) fn affordable(&self, limit: u32, budget: Option<u32>) -> u32 {
        let is_affordable = |count: u32| match budget {
            Some(budget) => self.cost(count) <= budget,
            None => self.loss(count, self.unavailable().saturating_sub(self.pending())) == 0,
        };
        let limit = limit.min(self.written);
        // The cost grows with the reduction.
        let mut affordable = 0;
        let mut above = limit + 1;
        while above - affordable > 1 {
            let middle = affordable + (above - affordable) / 2;
            if is_affordable(middle) {
                affordable = middle;
            } else {
                above = middle;
            }
        }
        affordable
    }

    /// Machines that stay available once the target is reached.
    pub(super) fn left_available(&self) -> u32 {
        self.surely_available() - self.cost(self.written.saturating_sub(self.target))
    }
}

/// A sum over sets.
pub(super) fn sum(sizes: &[SetSize], of: impl Fn(&SetSize) -> u32) -> u32 {
    sizes.iter().map(of).fold(0, u32::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reduction_is_expected_to_hit_what_it_may_hit() {
        // Written, live, available, marked and available; the costs of reducing by 1, 2, ….
        for (written, live, available, marked, costs) in [
            (3, 3, 3, 0, [1, 2, 3].as_slice()),
            (3, 3, 2, 0, &[0, 1, 2]),
            (3, 3, 0, 0, &[0, 0, 0]),
            // One replica has no Machine yet.
            (4, 3, 3, 0, &[0, 1, 2, 3]),
            // Marked Machines go first.
            (3, 3, 2, 1, &[1, 1, 2]),
            // A deletion is pending: it may be that of the second available one.
            (2, 3, 2, 0, &[0, 1]),
            (1, 3, 3, 0, &[1]),
            (0, 3, 3, 0, &[]),
        ] {
            let size = SetSize { written, live, available, marked_available: marked, ..SetSize::default() };
            let got: Vec<u32> = (1..=written).map(|count| size.cost(count)).collect();
            assert_eq!(got, costs, "{size:?}");
            for budget in 0..=written {
                let expected = (0..=written).rev().find(|count| size.cost(*count) <= budget).unwrap();
                assert_eq!(size.affordable(u32::MAX - 1, Some(budget)), expected, "{size:?} {budget}");
            }
        }
    }

    #[test]
    fn without_a_budget_only_what_is_lost_in_no_case_goes() {
        // Written, live, available, marked and available; the reduction.
        for (written, live, available, marked, expected) in [
            (3, 3, 3, 0, 0),
            (3, 3, 1, 0, 2),
            (4, 3, 3, 0, 1),
            (3, 3, 1, 1, 0),
            // What is not available may be what is deleted already.
            (2, 3, 2, 0, 0),
            (2, 3, 1, 0, 1),
            (4, 7, 6, 0, 0),
        ] {
            let size = SetSize { written, live, available, marked_available: marked, ..SetSize::default() };
            assert_eq!(size.affordable(9, None), expected, "{size:?}");
        }
    }
}
