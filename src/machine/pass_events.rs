//! The Events that report what a pass has done: those of its writes that change what people see, and of its steps.
//!
//! A condition is reported when its status or its reason changes, in its own words; a message that changes alone is not.

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{Resource, ResourceExt};
use serde_json::Value;

use super::api::host::HostObject;
use super::api::host_state::HostState;
use super::api::machine::Machine;
use super::api::machine_deployment::MachineDeployment;
use super::api::machine_set::MachineSet;
use super::host_observation::HostObjects;
use super::life_observation::MachineObjects;
use super::lifecycle::MachineStep;
use super::object_event::ObjectEvent;
use super::object_write::{MachineWrite, ObjectWrite};
use super::rollout_decision::{RolloutDecisionError, RolloutObjects, unhealthy_cause};

mod condition_table;

/// Of a pass over a Machine that was decided on these objects, and has done this step and these writes.
pub fn of_machine(
    objects: &MachineObjects,
    step: Option<&MachineStep>,
    done: &[MachineWrite],
) -> Vec<ObjectEvent> {
    let machine = &*objects.machine;
    let mut events = Vec::new();
    for write in done {
        match write {
            MachineWrite::Machine(ObjectWrite::PatchStatus { patch, .. }) => {
                events.extend(machine_status(machine, patch));
            }
            MachineWrite::Machine(ObjectWrite::Delete { .. }) => {
                let message = "the machine is deleted and its machine set creates another".to_owned();
                events.push(ObjectEvent::normal(machine, "Replacing", message));
            }
            MachineWrite::Host(ObjectWrite::PatchStatus { patch, .. }) => {
                events.extend(objects.host.iter().flat_map(|host| host_status(host, patch)));
            }
            MachineWrite::Node(ObjectWrite::Patch { name, .. }) if step == Some(&MachineStep::Cordon) => {
                events.push(ObjectEvent::normal(machine, "Cordoned", format!("node {name} is cordoned")));
            }
            _ => {}
        }
    }
    if let Some(MachineStep::DeletePods(pods)) = step {
        let pods: Vec<String> = pods.iter().map(ToString::to_string).collect();
        let message =
            format!("pods that are deleted without regard to their disruption budgets: {}", pods.join(", "));
        events.push(ObjectEvent::warning(machine, "DeletingPods", message));
    }
    events
}

/// Of a pass over a Host that was decided on these objects, and has done these writes.
pub fn of_host(objects: &HostObjects, done: &[MachineWrite]) -> Vec<ObjectEvent> {
    let mut events = Vec::new();
    for write in done {
        match write {
            MachineWrite::Host(ObjectWrite::PatchStatus { patch, .. }) => {
                events.extend(host_status(&objects.host, patch));
            }
            MachineWrite::Node(ObjectWrite::Delete { name, .. }) => {
                let message = format!("node {name} is deleted");
                events.push(ObjectEvent::normal(&*objects.host, "NodeDeleted", message.clone()));
                let machine = objects.machine.as_deref();
                events.extend(
                    machine.map(|machine| ObjectEvent::normal(machine, "NodeDeleted", message.clone())),
                );
            }
            _ => {}
        }
    }
    events
}

/// Of a pass over a MachineSet, which was this one before it, that has done these writes.
pub fn of_set(set: &MachineSet, done: &[MachineWrite]) -> Vec<ObjectEvent> {
    let mut events = Vec::new();
    for write in done {
        match write {
            MachineWrite::Machine(ObjectWrite::Create(machine)) => {
                let message = format!("created machine {}", machine.name_any());
                events.push(ObjectEvent::normal(set, "SuccessfulCreate", message));
            }
            MachineWrite::Machine(ObjectWrite::Delete { name, .. }) => {
                let message = format!("deleted machine {name}");
                events.push(ObjectEvent::normal(set, "SuccessfulDelete", message));
            }
            MachineWrite::Set(ObjectWrite::PatchStatus { patch, .. }) => {
                let before = set.status.as_ref().and_then(|status| status.error_message.as_deref());
                events.extend(error(set, before, patch));
            }
            _ => {}
        }
    }
    events
}

/// Of a pass over a MachineDeployment that was decided on these objects, and has done these writes.
pub fn of_deployment(objects: &RolloutObjects, done: &[MachineWrite]) -> Vec<ObjectEvent> {
    let deployment = &*objects.deployment;
    let mut events = Vec::new();
    for write in done {
        match write {
            MachineWrite::Set(ObjectWrite::Create(set)) => {
                let to = i64::from(set.spec.replicas);
                events.extend(scaled(deployment, &set.name_any(), 0, to));
            }
            MachineWrite::Set(ObjectWrite::Patch { name, patch }) => {
                let set = objects.sets.iter().find(|set| set.name_any() == *name);
                let from = set.map_or(0, |set| i64::from(set.spec.replicas));
                let to = patch["spec"]["replicas"].as_i64();
                events.extend(to.and_then(|to| scaled(deployment, name, from, to)));
            }
            MachineWrite::Set(ObjectWrite::Delete { name, .. }) => {
                let message = format!("deleted machine set {name}");
                events.push(ObjectEvent::normal(deployment, "SuccessfulDelete", message));
            }
            MachineWrite::Machine(ObjectWrite::Delete { name, .. }) => {
                events.extend(remediated(objects, name));
            }
            MachineWrite::Deployment(ObjectWrite::PatchStatus { patch, .. }) => {
                let before = deployment.status.as_ref().map(|status| &*status.conditions);
                events.extend(changed_conditions(deployment, before.unwrap_or_default(), patch));
            }
            _ => {}
        }
    }
    events
}

/// Of a MachineDeployment for which nothing can be decided.
pub fn of_undecided(deployment: &MachineDeployment, error: &RolloutDecisionError) -> ObjectEvent {
    ObjectEvent::warning(deployment, "RolloutFailed", error.to_string())
}

/// Of a pass over this object that failed.
pub fn of_failed(object: ObjectReference, error: String) -> ObjectEvent {
    ObjectEvent { object, warning: true, reason: "ReconcileError".to_owned(), message: error }
}

/// Of a Machine that is deleted because its node is unhealthy, which is reported of both.
fn remediated(objects: &RolloutObjects, name: &str) -> Vec<ObjectEvent> {
    let Some(machine) = objects.machines.iter().find(|machine| machine.name_any() == name) else {
        return Vec::new();
    };
    let cause = unhealthy_cause(objects, machine).unwrap_or_else(|| "unhealthy".to_owned());
    let message = format!("machine {name} is deleted and replaced: its node is unhealthy: {cause}");
    vec![
        ObjectEvent::warning(&**machine, "Unhealthy", message.clone()),
        ObjectEvent::warning(&*objects.deployment, "Remediating", message),
    ]
}

fn scaled(deployment: &MachineDeployment, set: &str, from: i64, to: i64) -> Option<ObjectEvent> {
    let direction = match from.cmp(&to) {
        std::cmp::Ordering::Less => "up",
        std::cmp::Ordering::Greater => "down",
        std::cmp::Ordering::Equal => return None,
    };
    let message = format!("scaled {direction} machine set {set} from {from} to {to}");
    Some(ObjectEvent::normal(deployment, "ScalingMachineSet", message))
}

fn machine_status(machine: &Machine, patch: &Value) -> Vec<ObjectEvent> {
    let before = machine.status.as_ref();
    let conditions = before.map(|before| &*before.conditions).unwrap_or_default();
    let mut after = self::conditions(patch);
    // What makes it Ready is told before.
    after.sort_by_key(|condition| condition.type_ == "Ready" && condition.status == "True");
    let mut events = condition_events(machine, conditions, &after);
    let message = before.and_then(|before| before.error_message.as_deref());
    let error = error(machine, message, patch);
    // Of an invalid specification there is a condition too.
    events.extend(error.filter(|error| events.iter().all(|event| event.reason != error.reason)));
    events
}

/// One that is quarantined is reported as that, with the reason in words: the condition may have had the same before.
fn host_status(host: &HostObject, patch: &Value) -> Vec<ObjectEvent> {
    let before = host.status.clone().unwrap_or_default();
    if patch["status"]["state"] == "Quarantined" && before.state != HostState::Quarantined {
        let (available, others): (Vec<Condition>, Vec<Condition>) =
            conditions(patch).into_iter().partition(|condition| condition.type_ == "Available");
        let message = available.into_iter().next().map(|condition| condition.message).unwrap_or_default();
        let mut events = condition_events(host, &before.conditions, &others);
        events.push(ObjectEvent::warning(host, "Quarantined", message));
        return events;
    }
    changed_conditions(host, &before.conditions, patch)
}

fn changed_conditions<K: Resource<DynamicType = ()>>(
    object: &K,
    before: &[Condition],
    patch: &Value,
) -> Vec<ObjectEvent> {
    condition_events(object, before, &conditions(patch))
}

fn condition_events<K: Resource<DynamicType = ()>>(
    object: &K,
    before: &[Condition],
    after: &[Condition],
) -> Vec<ObjectEvent> {
    let reports = condition_table::reports(before, after).into_iter();
    reports
        .map(|(report, message)| {
            let event = if report.warning { ObjectEvent::warning } else { ObjectEvent::normal };
            event(object, report.reason, message)
        })
        .collect()
}

/// The error of a status that is written, if it is not the one before.
fn error<K: Resource<DynamicType = ()>>(
    object: &K,
    before: Option<&str>,
    patch: &Value,
) -> Option<ObjectEvent> {
    let status = &patch["status"];
    let (reason, message) = (status["errorReason"].as_str()?, status["errorMessage"].as_str()?);
    (before != Some(message)).then(|| ObjectEvent::warning(object, reason, message.to_owned()))
}

fn conditions(patch: &Value) -> Vec<Condition> {
    serde_json::from_value(patch["status"]["conditions"].clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
