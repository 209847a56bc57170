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
}
