//! What is written for a step of a Host.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde_json::{Map, json};

use super::api::host::HostObject;
use super::api::host_claim::HostClaimRef;
use super::api::host_state::HostState;
use super::api::host_status::HostStatus;
use super::condition::{self, NewCondition, whole_seconds};
use super::host_job::HostJob;
use super::host_observation::HostObjects;
use super::host_orders::without_release;
use super::host_state::{HostLifePlan, HostReason, HostStep};
use super::node_writes;
use super::object_write::{MachineWrite, ObjectWrite};
use crate::model::api_contract::CLAIM_RELEASED_FINALIZER;

/// The type of the condition of a Host: True while it is free, else why it is not.
const AVAILABLE: &str = "Available";
/// The type of the condition of a Host that its power hook has confirmed to be off.
const POWERED_OFF: &str = "PoweredOff";

/// What is written after a plan.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HostLifeWrites {
    /// At most one, so that no version is written twice.
    pub write: Option<MachineWrite>,
    /// More is to be decided as soon as it is written.
    pub again: bool,
}

/// What is written for a plan that was made with `found`, the status with what workers have found. What the status lacks
/// of it is in the write.
pub fn decide(
    objects: &HostObjects,
    found: &HostStatus,
    plan: &HostLifePlan,
    now: Timestamp,
) -> HostLifeWrites {
    let host = &*objects.host;
    let is_recorded = host.status.clone().unwrap_or_default() == *found;
    let status = || {
        let status = status(host, found, plan, now);
        ObjectWrite::status(host, host.status.as_ref(), &status).map(MachineWrite::Host)
    };
    let other = plan.step.as_ref().and_then(|step| other_write(objects, step)).filter(|_| is_recorded);
    let write = other.or_else(status);
    let again = plan.step.is_some() && write.is_some();
    HostLifeWrites { write, again }
}

/// The write of a step outside of the status.
fn other_write(objects: &HostObjects, step: &HostStep) -> Option<MachineWrite> {
    let host = &*objects.host;
    match step {
        HostStep::AddFinalizer => Some(MachineWrite::Host(finalizer(host, true))),
        HostStep::RemoveFinalizer => Some(MachineWrite::Host(finalizer(host, false))),
        HostStep::ClearReleaseOrder => Some(MachineWrite::Host(without_release(host))),
        HostStep::DeleteNode(id) => node_writes::delete(objects.node.as_deref()?, id).map(MachineWrite::Node),
        HostStep::Enter(_)
        | HostStep::BeginReset { .. }
        | HostStep::Begin(..)
        | HostStep::Cancel(_)
        | HostStep::Release { .. }
        | HostStep::Quarantine => None,
    }
}

/// The status after the plan, and after its step if that is a part of the status.
fn status(host: &HostObject, found: &HostStatus, plan: &HostLifePlan, now: Timestamp) -> HostStatus {
    let mut status = found.clone();
    match &plan.step {
        Some(HostStep::Enter(state)) => {
            status.state = *state;
            if matches!(state, HostState::Unknown | HostState::Inspecting) {
                forget_jobs(&mut status);
            }
        }
        Some(HostStep::BeginReset { token, failures }) => {
            (status.state, status.last_token) = (HostState::Resetting, *token);
            let failures = i32::try_from(*failures).unwrap_or(i32::MAX);
            let is_unfit = status.failed_job.as_ref().is_some_and(|failed| failed.job == HostJob::Check);
            if failures > status.failures || is_unfit {
                status.last_failure = Some(Time(whole_seconds(now)));
            }
            status.failures = failures;
            forget_jobs(&mut status);
        }
        Some(HostStep::Release { state, failures }) => {
            (status.state, status.claim) = (*state, None);
            status.failures = i32::try_from(*failures).unwrap_or(i32::MAX);
        }
        Some(HostStep::Quarantine) => status.state = HostState::Quarantined,
        _ => {}
    }
    entered(&mut status, host, &plan.reason, now);
    status
}

/// The claim of a free Host. `None` never happens: a Host with a claim has another status than without.
pub(super) fn claim(
    host: &HostObject,
    claim: HostClaimRef,
    now: Timestamp,
) -> Option<ObjectWrite<HostObject>> {
    let mut status = host.status.clone().unwrap_or_default();
    let machine = format!("{}/{}", claim.machine.namespace, claim.machine.name);
    (status.state, status.last_token) = (HostState::Claimed, claim.token);
    status.claim = Some(claim);
    forget_jobs(&mut status);
    entered(&mut status, host, &HostReason::Claimed(machine), now);
    ObjectWrite::status(host, host.status.as_ref(), &status)
}

fn forget_jobs(status: &mut HostStatus) {
    status.done_jobs.clear();
    status.failed_job = None;
    status.job_queue = None;
}

/// The times and the condition of the state that it has now. The reason of a quarantine stays until it ends.
fn entered(status: &mut HostStatus, host: &HostObject, reason: &HostReason, now: Timestamp) {
    let before = host.status.as_ref();
    let generation = host.metadata.generation.unwrap_or_default();
    if before.is_none_or(|before| before.state != status.state) {
        status.state_since = Some(Time(whole_seconds(now)));
    }
    status.observed_generation = generation;
    let is_held = status.state == HostState::Quarantined
        && before.is_some_and(|before| {
            before.state == status.state && before.conditions.iter().any(|one| one.type_ == AVAILABLE)
        });
    if !is_held {
        let available = NewCondition {
            kind: AVAILABLE,
            status: Some(status.state == HostState::Available),
            reason: reason.name(),
            message: reason.to_string(),
        };
        status.conditions = condition::set(&status.conditions, [available], generation, now);
    }
    let powered_off = powered_off(status, host);
    status.conditions.retain(|one| one.type_ != POWERED_OFF || powered_off.is_some());
    status.conditions = condition::set(&status.conditions, powered_off, generation, now);
}

/// While a power hook has confirmed that it is off.
fn powered_off(status: &HostStatus, host: &HostObject) -> Option<NewCondition> {
    let hook = host.spec.power.as_ref().map(|power| power.hook.as_str()).unwrap_or_default();
    status.powered_off.then(|| NewCondition {
        kind: POWERED_OFF,
        status: Some(true),
        reason: "ConfirmedByPowerHook",
        message: format!("power hook {hook} reports that the host is off"),
    })
}

/// Those of others stay.
fn finalizer(host: &HostObject, present: bool) -> ObjectWrite<HostObject> {
    let others = host.finalizers().iter().map(String::as_str).filter(|one| *one != CLAIM_RELEASED_FINALIZER);
    let all: Vec<&str> = others.chain(Some(CLAIM_RELEASED_FINALIZER).filter(|_| present)).collect();
    let metadata = ("finalizers".to_owned(), json!(all));
    ObjectWrite::patch(host, Map::from_iter([metadata]), Map::new())
}

#[cfg(test)]
mod tests;
