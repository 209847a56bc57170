//! Whether a rollout makes progress, and since when it does not.

use jiff::{SignedDuration, Timestamp};

use super::goal::RolloutGoal;
use crate::machine::revision_hash::RevisionHash;

/// What a plan records for the next one. The caller keeps it in the status of the MachineDeployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutProgress {
    /// Of the template that is rolled out.
    pub hash: RevisionHash,
    /// The `replicas` that are rolled out.
    pub replicas: u32,
    /// Machines of the current set.
    pub updated: u32,
    /// Machines of other sets, those that are being deleted included.
    pub old: u32,
    /// Ready Machines.
    pub ready: u32,
    /// Available Machines.
    pub available: u32,
    /// Machines without a host.
    pub waiting: u32,
    /// The rollout was complete or paused: no time passed towards the deadline.
    pub resting: bool,
    /// The time of the last progress.
    pub since: Timestamp,
}

impl RolloutProgress {
    /// With the time of the last progress: now, if anything has become better (as in Kubernetes: more updated, ready or
    /// available Machines, fewer old ones; and here fewer that wait for a host), if the goal is another one, or if no time
    /// passes.
    pub(super) fn after(self, before: Option<&Self>) -> Self {
        let since = match before {
            Some(before) if !self.resting && !before.resting && !self.is_better_than(before) => before.since,
            Some(before) if self.resting && before.resting => before.since,
            _ => self.since,
        };
        Self { since, ..self }
    }

    fn is_better_than(&self, before: &Self) -> bool {
        self.hash != before.hash
            || self.replicas != before.replicas
            || self.updated > before.updated
            || self.old < before.old
            || self.ready > before.ready
            || self.available > before.available
            || self.waiting < before.waiting
    }

    /// Whether the deadline has passed, and if not, when it will have.
    pub(super) fn deadline(&self, goal: &RolloutGoal, now: Timestamp) -> Deadline {
        let Some(deadline) = goal.progress_deadline.filter(|_| !self.resting) else {
            return Deadline::Never;
        };
        if now.duration_since(self.since) > deadline {
            return Deadline::Exceeded;
        }
        let next = self.since.checked_add(deadline.saturating_add(SignedDuration::from_secs(1)));
        next.map_or(Deadline::Never, Deadline::At)
    }
}

/// Of `progressDeadlineSeconds`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deadline {
    /// No time passes, or there is no deadline.
    Never,
    /// When it is to be looked at again.
    At(Timestamp),
    /// It has passed.
    Exceeded,
}
