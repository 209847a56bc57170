//! The conditions of a Machine, and the phase that follows from them.

use super::reason::MachineReason;
use crate::machine::api::machine_status::MachinePhase;

/// The type of a condition, in the order of a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MachineConditionKind {
    /// A Host is its own.
    HostClaimed,
    /// The preflight of its host has succeeded, and the host was clean.
    HostChecked,
    /// The packages of the operating system are upgraded. Only with `distUpgradeOnBoot`.
    PackagesUpgraded,
    /// Its host is deployed.
    Deployed,
    /// Its Node exists.
    NodeLinked,
    /// Its Node is Ready and accepts pods.
    Ready,
    /// It is being deleted, and its Node is drained or cannot be.
    Drained,
    /// It is being deleted, and its host is clean or quarantined.
    HostReleased,
}

impl MachineConditionKind {
    /// As in the status.
    pub fn name(self) -> &'static str {
        match self {
            Self::HostClaimed => "HostClaimed",
            Self::HostChecked => "HostChecked",
            Self::PackagesUpgraded => "PackagesUpgraded",
            Self::Deployed => "Deployed",
            Self::NodeLinked => "NodeLinked",
            Self::Ready => "Ready",
            Self::Drained => "Drained",
            Self::HostReleased => "HostReleased",
        }
    }
}

/// A condition of the status, without its times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineCondition {
    /// Its type.
    pub kind: MachineConditionKind,
    /// `None`: Unknown.
    pub status: Option<bool>,
    /// Reason and message.
    pub reason: MachineReason,
}

/// `status.phase`. `has_error`: `status.errorReason` is set. `was_ready`: the condition Ready has been True.
pub fn phase(
    conditions: &[MachineCondition],
    deleting: bool,
    has_error: bool,
    was_ready: bool,
) -> MachinePhase {
    let holds =
        |kind| conditions.iter().any(|condition| condition.kind == kind && condition.status == Some(true));
    if deleting {
        MachinePhase::Deleting
    } else if has_error {
        MachinePhase::Failed
    } else if was_ready || holds(MachineConditionKind::Ready) {
        MachinePhase::Running
    } else if holds(MachineConditionKind::Deployed) {
        MachinePhase::Provisioned
    } else if holds(MachineConditionKind::HostClaimed) {
        MachinePhase::Provisioning
    } else {
        MachinePhase::Pending
    }
}
