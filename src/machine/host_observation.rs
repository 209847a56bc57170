//! From Hosts of the API to what the planners know of them.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;

use super::api::conflict::HostConflict;
use super::api::host::HostObject;
use super::api::host_status::HostStatus;
use super::api::machine::Machine;
use super::api::machine_status::MachineError;
use super::api::provider_id::ProviderId;
use super::host_choice::{PoolHost, PoolState};
use super::host_job::{HostWork, JobFailure};
use super::host_orders::orders;
use super::host_state::{ClaimView, Claimant, HostScene, HostView};
use super::job_queue::JobQueue;
use super::node_observation;
use crate::machine::api::host_state::HostState;
use crate::model::api_contract::CLAIM_RELEASED_FINALIZER;

/// A Host, the Machine in its claim, and the Node of its name.
#[derive(Debug, Clone)]
pub struct HostObjects {
    /// The Host.
    pub host: Arc<HostObject>,
    /// The Machine with the namespace and name of the claim, also one of another UID.
    pub machine: Option<Arc<Machine>>,
    /// The Node with the name of the Host, whatever its provider ID.
    pub node: Option<Arc<Node>>,
    /// The first conflict of a Host without a claim with what caches show.
    pub conflict: Option<HostConflict>,
}

/// What the planners know of a Host with this status. `None` for a name that no Host has.
pub(super) fn view_with(host: &HostObject, status: &HostStatus) -> Option<HostView> {
    let claim = status.claim.as_ref().map(|claim| ClaimView {
        machine_uid: claim.machine.uid.clone(),
        machine: format!("{}/{}", claim.machine.namespace, claim.machine.name),
        since: claim.since.0,
        queue: status.job_queue.as_ref().map(JobQueue::from).unwrap_or_default(),
    });
    let failure = status.failed_job.as_ref().map(|failed| JobFailure {
        job: failed.job,
        attempts: u32::try_from(failed.attempts).unwrap_or_default(),
        last: failed.last.0,
        message: failed.message.clone(),
    });
    Some(HostView {
        name: host.name_any().parse().ok()?,
        version: host.resource_version().unwrap_or_default(),
        state: status.state,
        claim,
        last_token: status.last_token,
        failures: u32::try_from(status.failures).unwrap_or_default(),
        finalizer: host.finalizers().iter().any(|one| one == CLAIM_RELEASED_FINALIZER),
        deleting: host.metadata.deletion_timestamp.is_some(),
        done: status.done_jobs.iter().copied().collect(),
        failure,
        residue: status.residue.clone(),
        silent_since: status.silent_since.as_ref().map(|time| time.0),
        orders: orders(host, status),
        has_power_hook: host.spec.power.is_some(),
        hook_reports_off: status.powered_off,
    })
}

/// What the planners know of a Host.
pub fn view(host: &HostObject) -> Option<HostView> {
    match &host.status {
        Some(status) => view_with(host, status),
        None => view_with(host, &HostStatus::default()),
    }
}

/// What is known of a Host with this status.
pub fn scene(
    objects: &HostObjects,
    status: &HostStatus,
    work: HostWork,
    failed_joins: u32,
) -> Option<HostScene> {
    let host = view_with(&objects.host, status)?;
    let claimant = claimant(&host, objects.machine.as_deref());
    let node_exists = own_node(&host, objects.node.as_deref()).is_some();
    let conflict = objects.conflict.clone();
    Some(HostScene { host, claimant, node_exists, conflict, work, failed_joins })
}

/// Whether the Node of the claim is Ready; `None` without one.
pub fn is_node_ready(host: &HostView, node: Option<&Node>) -> Option<bool> {
    own_node(host, node).map(node_observation::is_ready)
}

/// The Node, if its provider ID is that of the claim.
fn own_node<'a>(host: &HostView, node: Option<&'a Node>) -> Option<&'a Node> {
    let claim = host.claim.as_ref()?;
    let id = ProviderId { host: host.name.clone(), machine_uid: claim.machine_uid.clone() }.to_string();
    node.filter(|node| node_observation::provider_id(node) == Some(&id))
}

/// A Machine that has noted another host has lost this one.
pub(super) fn claimant(host: &HostView, machine: Option<&Machine>) -> Claimant {
    let uid = host.claim.as_ref().map(|claim| claim.machine_uid.as_str());
    let Some(machine) = machine.filter(|machine| machine.metadata.uid.as_deref() == uid) else {
        return Claimant::Gone;
    };
    let Some(status) =
        machine.status.as_ref().filter(|status| status.host.as_deref() == Some(host.name.as_str()))
    else {
        return Claimant::Gone;
    };
    let failed = [MachineError::JoinClusterTimeoutError, MachineError::CreateError];
    Claimant::Present {
        deleting: machine.metadata.deletion_timestamp.is_some(),
        drained: status.conditions.iter().any(|one| one.type_ == "Drained" && one.status == "True"),
        joined: status.node_ref.is_some(),
        join_failed: status.error_reason.is_some_and(|reason| failed.contains(&reason)),
    }
}

/// A Host for the choice of hosts. `None` for a name that no host can have.
pub(super) fn pool_host(host: &HostObject) -> Option<PoolHost> {
    let view = view(host)?;
    let status = host.status.as_ref();
    let facts = status.and_then(|status| status.facts.as_ref());
    Some(PoolHost {
        state: match view.state {
            _ if view.is_free() => PoolState::Available,
            HostState::Quarantined | HostState::Lost => PoolState::Quarantined,
            _ => PoolState::Busy,
        },
        claim: view.claim.map(|claim| claim.machine_uid),
        name: view.name,
        labels: host.labels().clone(),
        distribution: facts.and_then(|facts| facts.operating_system.parse().ok()),
        architecture: facts.and_then(|facts| facts.architecture.parse().ok()),
        failure_domain: host.spec.failure_domain.clone(),
        last_failure: status.and_then(|status| status.last_failure.as_ref()).map(|time| time.0),
    })
}

#[cfg(test)]
mod tests;
