//! What a rollout is for.

use jiff::SignedDuration;

use crate::machine::count_or_percent::CountOrPercent;
use crate::machine::revision_hash::RevisionHash;

/// The specification of a MachineDeployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutGoal {
    /// `spec.replicas`.
    pub replicas: u32,
    /// `strategy.rollingUpdate.maxSurge`.
    pub max_surge: CountOrPercent,
    /// `strategy.rollingUpdate.maxUnavailable`.
    pub max_unavailable: CountOrPercent,
    /// `spec.paused`: sizes follow `replicas`, no template is rolled out, no time passes towards the deadline.
    pub paused: bool,
    /// It has a deletion timestamp: all sets are scaled to 0, and then deleted.
    pub deleting: bool,
    /// `minReadySeconds`.
    pub min_ready: SignedDuration,
    /// `progressDeadlineSeconds`; `None`: never.
    pub progress_deadline: Option<SignedDuration>,
    /// `revisionHistoryLimit`: how many sets without Machines are kept for a rollback.
    pub revision_history_limit: u32,
    /// Of the template.
    pub hash: RevisionHash,
}
