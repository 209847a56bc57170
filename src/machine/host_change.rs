//! What an operator may request of a Host, and how it is written.
//!
//! A request is an annotation: controllers alone write the status. It is written with the resource version of the Host
//! that it was decided on.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::api::host_claim::MachineReference;
use super::api::host_state::HostState;
use super::api::host_status::HostStatus;
use crate::model::api_contract::{HOST_INSPECT, HOST_LOST, HOST_POWERED_OFF, HOST_QUARANTINE, HOST_RELEASE};

/// What an operator requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostRequest {
    /// To have its facts read again, and whether it is clean.
    Inspect,
    /// To have it returned to the pool, out of quarantine or from its Machine.
    Release {
        /// The operator has verified that it is off: what runs on it has ended.
        powered_off: bool,
    },
    /// To declare that it will not return: its Machine is replaced, and its Node deleted.
    Lost {
        /// For people.
        reason: String,
    },
    /// To keep it out of the pool: at once if it is free, else when its Machine is gone.
    Quarantine {
        /// For people.
        reason: String,
    },
}

/// What is known of the Machine in the claim of a Host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimantStatus {
    /// The Machine exists.
    Exists,
    /// The Node of the Host is Ready; to release it, the Machine is gone.
    NodeReady,
    /// No Node of the Host is Ready; to release it, the Machine is gone.
    Gone,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostRefusal {
    /// It belongs to a Machine.
    #[error("it belongs to Machine {namespace}/{name}, state {state}", namespace = machine.namespace, name = machine.name)]
    Claimed {
        /// Of the claim.
        machine: MachineReference,
        /// Of the Host.
        state: HostState,
    },
    /// Its Machine exists: it may run its node.
    #[error("Machine {namespace}/{name} exists and may run its node", namespace = machine.namespace, name = machine.name)]
    MachineRuns {
        /// Of the claim.
        machine: MachineReference,
    },
    /// Its Machine is gone, but its Node is Ready.
    #[error("Machine {namespace}/{name} no longer exists, but its Node is Ready", namespace = machine.namespace, name = machine.name)]
    NodeRuns {
        /// Of the claim.
        machine: MachineReference,
    },
    /// It runs: it is not lost.
    #[error("it runs the Node of Machine {namespace}/{name}, which is Ready", namespace = machine.namespace, name = machine.name)]
    NodeReady {
        /// Of the claim.
        machine: MachineReference,
    },
    /// Only a release ends this state.
    #[error("its state is {0}, which only a release ends")]
    Held(HostState),
    /// There is nothing to release.
    #[error("its state is {0}, and it has no claim")]
    NothingToRelease(HostState),
}

/// Annotations to set, by key; `None` removes one.
pub type HostAnnotations = BTreeMap<&'static str, Option<String>>;

/// The annotations that make the request. `present` are those of the Host, and `claimant` is only read for a Host with a
/// claim.
///
/// A Host in quarantine may be released while its Machine exists: it was quarantined because that Machine no longer waits
/// for it.
///
/// # Errors
/// Why the request is refused.
pub fn annotations(
    status: &HostStatus,
    present: &BTreeMap<String, String>,
    request: &HostRequest,
    claimant: ClaimantStatus,
    now: Timestamp,
) -> Result<HostAnnotations, HostRefusal> {
    let state = status.state;
    let claimed = status.claim.as_ref().map(|claim| &claim.machine);
    let at = || Some(now.to_string());
    let is_held = matches!(state, HostState::Quarantined | HostState::Lost);
    match (request, claimed) {
        (HostRequest::Inspect, Some(machine)) => {
            Err(HostRefusal::Claimed { machine: machine.clone(), state })
        }
        (HostRequest::Inspect, None) if is_held => Err(HostRefusal::Held(state)),
        (HostRequest::Inspect, None) => Ok(BTreeMap::from([(HOST_INSPECT, at())])),
        (HostRequest::Quarantine { reason }, _) => {
            Ok(BTreeMap::from([(HOST_QUARANTINE, Some(reason.clone())), (HOST_RELEASE, None)]))
        }
        (HostRequest::Lost { .. }, Some(machine)) if claimant == ClaimantStatus::NodeReady => {
            Err(HostRefusal::NodeReady { machine: machine.clone() })
        }
        (HostRequest::Lost { reason }, _) => Ok(BTreeMap::from([(HOST_LOST, Some(reason.clone()))])),
        (HostRequest::Release { .. }, _) if state == HostState::Lost => {
            Ok(BTreeMap::from([(HOST_LOST, None), (HOST_QUARANTINE, None), (HOST_RELEASE, at())]))
        }
        (HostRequest::Release { .. }, _) if is_held => {
            Ok(BTreeMap::from([(HOST_QUARANTINE, None), (HOST_RELEASE, at())]))
        }
        // It was declared lost, and answers.
        (HostRequest::Release { .. }, _) if present.contains_key(HOST_LOST) => {
            Ok(BTreeMap::from([(HOST_LOST, None)]))
        }
        (HostRequest::Release { .. }, None) => match present.contains_key(HOST_QUARANTINE) {
            true => Ok(BTreeMap::from([(HOST_QUARANTINE, None)])),
            false => Err(HostRefusal::NothingToRelease(state)),
        },
        (HostRequest::Release { powered_off: true }, Some(_)) => {
            Ok(BTreeMap::from([(HOST_POWERED_OFF, at())]))
        }
        (HostRequest::Release { powered_off: false }, Some(machine)) => match claimant {
            ClaimantStatus::Exists => Err(HostRefusal::MachineRuns { machine: machine.clone() }),
            ClaimantStatus::NodeReady => Err(HostRefusal::NodeRuns { machine: machine.clone() }),
            // The controllers reset it without a request.
            ClaimantStatus::Gone => Ok(BTreeMap::new()),
        },
    }
}

#[cfg(test)]
mod tests;
