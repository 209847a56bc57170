//! The numbers of a MachineDeployment's status.

use jiff::Timestamp;

use super::goal::RolloutGoal;
use super::observed_set::ObservedSet;
use crate::machine::observed_machine::{MachineStage, ObservedMachine};

/// Numbers of Machines for the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RolloutCounts {
    /// `status.replicas`: of all sets, without those that are being deleted.
    pub replicas: u32,
    /// `status.updatedReplicas`: of the current set.
    pub updated: u32,
    /// `status.readyReplicas`.
    pub ready: u32,
    /// `status.availableReplicas`.
    pub available: u32,
    /// `status.unavailableReplicas`.
    pub unavailable: u32,
    /// Machines that drain, or whose host is reset.
    pub deleting: u32,
    /// Machines without a host.
    pub waiting: u32,
}

impl RolloutCounts {
    /// Of the sets; `current` is that of the template.
    pub(super) fn of(
        goal: &RolloutGoal,
        sets: &[&ObservedSet],
        current: Option<usize>,
        now: Timestamp,
    ) -> Self {
        let all = || sets.iter().flat_map(|set| &set.machines);
        let live = || all().filter(|machine| !machine.deleting);
        let own =
            current.and_then(|index| sets.get(index)).map(|set| set.machines.as_slice()).unwrap_or_default();
        let replicas = count(live());
        let available = count(live().filter(|machine| machine.is_available(goal.min_ready, now)));
        RolloutCounts {
            replicas,
            updated: count(own.iter().filter(|machine| !machine.deleting)),
            ready: count(live().filter(|machine| machine.is_ready())),
            available,
            unavailable: replicas - available,
            deleting: count(all()) - replicas,
            waiting: count(live().filter(|machine| machine.stage == MachineStage::WaitingForHost)),
        }
    }
}

/// How many Machines.
pub(super) fn count<'a>(machines: impl Iterator<Item = &'a ObservedMachine>) -> u32 {
    u32::try_from(machines.count()).unwrap_or(u32::MAX)
}
