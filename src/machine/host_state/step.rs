//! One step of a Host.

use jiff::Timestamp;

use super::reason::HostReason;
use crate::machine::api::host_state::HostState;
use crate::machine::api::provider_id::ProviderId;
use crate::machine::host_job::{HostJob, JobFence};

/// What to do with a Host: at most one write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostStep {
    /// Add `metalform.dev/claim-released`.
    AddFinalizer,
    /// Remove it: no Machine has the host, and nothing of one may run on it.
    RemoveFinalizer,
    /// Remove the order to release it, which is carried out.
    ClearReleaseOrder,
    /// Write the state. [`HostState::Unknown`] and [`HostState::Inspecting`] clear what is known of its jobs.
    Enter(HostState),
    /// Write [`HostState::Resetting`] with this token, and clear what is known of its jobs.
    BeginReset {
        /// Greater than every earlier one.
        token: i64,
        /// `status.failures`.
        failures: u32,
    },
    /// Start a worker.
    Begin(HostJob, JobFence),
    /// Interrupt the worker of this process, and wait until it has ended.
    Cancel(HostJob),
    /// Delete the Node with this provider ID, with its UID as precondition.
    DeleteNode(ProviderId),
    /// Remove the claim; the host is clean. One write.
    Release {
        /// [`HostState::Available`] or [`HostState::Quarantined`].
        state: HostState,
        /// `status.failures`.
        failures: u32,
    },
    /// Write [`HostState::Quarantined`] with the reason of the plan. A claim stays.
    Quarantine,
}

impl HostStep {
    /// Whether it must be planned again on objects that were read from the API server and not from a cache.
    pub fn needs_live_read(&self) -> bool {
        match self {
            Self::RemoveFinalizer
            | Self::BeginReset { .. }
            | Self::DeleteNode(_)
            | Self::Release { .. }
            | Self::Quarantine => true,
            Self::AddFinalizer
            | Self::ClearReleaseOrder
            | Self::Enter(_)
            | Self::Begin(..)
            | Self::Cancel(_) => false,
        }
    }
}

/// What becomes of a Host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostLifePlan {
    /// The state that it has after the step.
    pub state: HostState,
    /// Why it is in that state.
    pub reason: HostReason,
    /// The next step; `None`: nothing is left to do, or a worker or a Machine is awaited.
    pub step: Option<HostStep>,
    /// When to plan again if nothing changes.
    pub wake: Option<Timestamp>,
}

impl HostLifePlan {
    pub(super) fn of(state: HostState, reason: HostReason) -> Self {
        Self { state, reason, step: None, wake: None }
    }

    pub(super) fn step(self, step: HostStep) -> Self {
        Self { step: Some(step), ..self }
    }

    /// At the latest.
    pub(super) fn until(self, wake: Timestamp) -> Self {
        let wake = self.wake.map_or(wake, |present| present.min(wake));
        Self { wake: Some(wake), ..self }
    }

    /// Writes the state where it is another one.
    pub(super) fn entered_from(self, present: HostState) -> Self {
        let step = (self.state != present).then_some(HostStep::Enter(self.state));
        Self { step, ..self }
    }
}
