//! The conditions of a MachineDeployment.

use super::counts::RolloutCounts;
use super::fenceposts::Fenceposts;
use super::goal::RolloutGoal;
use super::progress::Deadline;

/// The type of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RolloutConditionKind {
    /// At least `replicas` − `maxUnavailable` Machines are available.
    Available,
    /// The rollout makes progress or is complete. `ProgressDeadlineExceeded` if there was none for
    /// `progressDeadlineSeconds`, `NoHostAvailable` while it cannot go on without a host.
    Progressing,
    /// Only a host or another budget lets the rollout continue, or the end of a conflict of selectors.
    RolloutBlocked,
}

impl RolloutConditionKind {
    /// As in the status.
    pub fn name(self) -> &'static str {
        match self {
            Self::Available => "Available",
            Self::Progressing => "Progressing",
            Self::RolloutBlocked => "RolloutBlocked",
        }
    }
}

/// A condition of the status, without its times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutCondition {
    /// Its type.
    pub kind: RolloutConditionKind,
    /// `None`: Unknown.
    pub status: Option<bool>,
    /// `CamelCase`.
    pub reason: &'static str,
    /// For people. Contains no time: it stays the same while nothing changes.
    pub message: String,
}

/// What the conditions depend on.
pub(super) struct RolloutState {
    pub(super) is_complete: bool,
    /// The set of the template is being deleted.
    pub(super) awaited: bool,
    /// Hosts that the next step needs, if nothing else helps.
    pub(super) needed: u32,
    pub(super) free: u32,
    /// Machines of other templates.
    pub(super) old: u32,
    pub(super) fenceposts: Fenceposts,
    pub(super) counts: RolloutCounts,
    pub(super) deadline: Deadline,
}

impl RolloutState {
    fn is_blocked(&self) -> bool {
        self.needed > 0 && self.free == 0
    }
}

/// Every kind once, in the order of their names.
pub(super) fn conditions(goal: &RolloutGoal, state: &RolloutState) -> Vec<RolloutCondition> {
    vec![available(goal, state), progressing(goal, state), blocked(goal, state)]
}

fn available(goal: &RolloutGoal, state: &RolloutState) -> RolloutCondition {
    let least = state.fenceposts.min_available(goal.replicas);
    let is_available = state.counts.available >= least;
    RolloutCondition {
        kind: RolloutConditionKind::Available,
        status: Some(is_available),
        reason: if is_available { "MinimumReplicasAvailable" } else { "MinimumReplicasUnavailable" },
        message: format!("available machines: {}, required: {least}", state.counts.available),
    }
}

fn progressing(goal: &RolloutGoal, state: &RolloutState) -> RolloutCondition {
    let counts = state.counts;
    let numbers = || {
        format!(
            "updated machines: {} of {}, available: {}, old: {}",
            counts.updated, goal.replicas, counts.available, state.old
        )
    };
    let (status, reason, message) = if goal.deleting {
        let left = counts.replicas + counts.deleting;
        (None, "Deleting", format!("machines left: {left}"))
    } else if goal.paused {
        (None, "Paused", "the rollout is paused".to_owned())
    } else if state.is_complete {
        (Some(true), "RolloutComplete", numbers())
    } else if state.is_blocked() {
        (Some(false), "NoHostAvailable", numbers())
    } else if state.deadline == Deadline::Exceeded {
        (Some(false), "ProgressDeadlineExceeded", numbers())
    } else if state.awaited {
        let message = "the machine set of this template is being deleted and is created again afterwards";
        (Some(true), "WaitingForMachineSet", message.to_owned())
    } else {
        (Some(true), "RolloutProgressing", numbers())
    };
    RolloutCondition { kind: RolloutConditionKind::Progressing, status, reason, message }
}

fn blocked(goal: &RolloutGoal, state: &RolloutState) -> RolloutCondition {
    let kind = RolloutConditionKind::RolloutBlocked;
    if !state.is_blocked() {
        // Without the number of free hosts: it changes for other reasons.
        let message = if state.needed == 0 { "no host is required" } else { "a host is free" }.to_owned();
        return RolloutCondition { kind, status: Some(false), reason: "NotBlocked", message };
    }
    let Fenceposts { surge, unavailable } = state.fenceposts;
    let hint = if state.old > 0 && unavailable == 0 { ", or set maxUnavailable to 1 or more" } else { "" };
    let message = format!(
        "required hosts: {}, free: {} (replicas {}, maxSurge {surge}, maxUnavailable {unavailable}): add hosts \
         that match the template{hint}",
        state.needed, state.free, goal.replicas
    );
    RolloutCondition { kind, status: Some(true), reason: "NoHostAvailable", message }
}
