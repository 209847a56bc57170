//! What a run led to.

use std::time::Duration;

use crate::operation::driver::ActionRecord;

/// What a run led to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunSummary {
    /// Phases that hold or were begun, in order.
    pub phases: Vec<PhaseRun>,
    /// Resources and objects that were changed.
    pub changed: usize,
    /// From the first effect to the last.
    pub elapsed: Duration,
}

/// One phase of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseRun {
    /// Its title.
    pub title: &'static str,
    /// When it began, since the beginning of the run.
    pub began: Duration,
    /// From its first effect until it held, or until the run ended.
    pub elapsed: Duration,
    /// Resources and objects that it changed.
    pub changed: usize,
    /// What it did, in order.
    pub actions: Vec<ActionRecord>,
}

impl RunSummary {
    /// The sum of the phases' own durations. What the run took less was done side by side.
    pub fn sum_of_phases(&self) -> Duration {
        self.phases.iter().map(|phase| phase.elapsed).sum()
    }

    /// This run and a later one of the same operation, as one.
    #[must_use]
    pub fn followed_by(mut self, later: Self) -> Self {
        for mut phase in later.phases {
            if let Some(earlier) = self.phases.iter_mut().find(|earlier| earlier.title == phase.title) {
                earlier.elapsed += phase.elapsed;
                earlier.changed += phase.changed;
                earlier.actions.append(&mut phase.actions);
            } else {
                phase.began += self.elapsed;
                self.phases.push(phase);
            }
        }
        self.changed += later.changed;
        self.elapsed += later.elapsed;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(phases: &[(&'static str, u64, usize)]) -> RunSummary {
        let run = |&(title, seconds, changed): &(&'static str, u64, usize)| PhaseRun {
            title,
            began: Duration::from_secs(1),
            elapsed: Duration::from_secs(seconds),
            changed,
            actions: Vec::new(),
        };
        RunSummary {
            phases: phases.iter().map(run).collect(),
            changed: phases.iter().map(|(_, _, changed)| changed).sum(),
            elapsed: Duration::from_secs(10),
        }
    }

    #[test]
    fn two_runs_of_a_node_are_one_in_its_report() {
        let both = summary(&[("a", 2, 3), ("b", 1, 0)]).followed_by(summary(&[("b", 4, 1), ("c", 1, 2)]));
        let phases: Vec<(&str, u64, u64, usize)> = both
            .phases
            .iter()
            .map(|phase| (phase.title, phase.began.as_secs(), phase.elapsed.as_secs(), phase.changed))
            .collect();
        assert_eq!(phases, [("a", 1, 2, 3), ("b", 1, 5, 1), ("c", 11, 1, 2)]);
        assert_eq!((both.changed, both.elapsed.as_secs()), (6, 20));
    }
}
