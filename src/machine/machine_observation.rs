//! From Machines of the API to what the planners know of them.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

use super::api::machine::Machine;
use super::lifecycle::MachineConditionKind;
use super::observed_machine::{MachineStage, ObservedMachine};
use crate::model::api_contract::DELETE_MACHINE;

/// What the planners know of a Machine. One without a creation time, which the API never returns, is the newest.
pub fn observe(machine: &Machine) -> ObservedMachine {
    ObservedMachine {
        name: machine.name_any(),
        created: created(machine),
        deleting: machine.metadata.deletion_timestamp.is_some(),
        stage: stage(machine),
        marked: machine.annotations().contains_key(DELETE_MACHINE),
    }
}

/// When an object was created.
pub(super) fn created(object: &impl ResourceExt) -> Timestamp {
    object.creation_timestamp().map_or(Timestamp::MAX, |time| time.0)
}

/// The name of its Node, once it has joined.
pub fn node_name(machine: &Machine) -> Option<&String> {
    machine.status.as_ref()?.node_ref.as_ref()?.name.as_ref()
}

/// Its condition Ready.
pub(super) fn ready(machine: &Machine) -> Option<&Condition> {
    let mut conditions = machine.status.as_ref()?.conditions.iter();
    conditions.find(|one| one.type_ == MachineConditionKind::Ready.name())
}

/// `minReadySeconds`.
pub(super) fn min_ready(seconds: i32) -> SignedDuration {
    SignedDuration::from_secs(i64::from(seconds.max(0)))
}

/// The first time at which one of these Machines becomes available unless its Node changes.
pub(super) fn next_available(
    machines: &[ObservedMachine],
    min_ready: SignedDuration,
    now: Timestamp,
) -> Option<Timestamp> {
    machines.iter().filter_map(|machine| machine.available_at(min_ready, now)).min()
}

/// Those Machines that `is_own` accepts, observed.
pub(super) fn observe_all(
    machines: &[Arc<Machine>],
    is_own: impl Fn(&Machine) -> bool,
) -> Vec<ObservedMachine> {
    machines.iter().filter(|machine| is_own(machine)).map(|machine| observe(machine)).collect()
}

/// An error is terminal: the Machine never becomes a node again, whatever it was before. A host that is noted and not yet
/// claimed is none.
fn stage(machine: &Machine) -> MachineStage {
    let Some(status) = &machine.status else { return MachineStage::WaitingForHost };
    if status.error_reason.is_some() {
        MachineStage::Lost
    } else if status.node_ref.is_some() {
        let ready = ready(machine).filter(|ready| ready.status == "True");
        MachineStage::Joined { ready_since: ready.map(|one| one.last_transition_time.0) }
    } else if status.provisioning_since.is_some() {
        MachineStage::Joining
    } else {
        MachineStage::WaitingForHost
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn machine(metadata: Value, status: Value) -> Machine {
        serde_json::from_value(json!({
            "metadata": metadata,
            "spec": { "providerSpec": { "value": {} }, "versions": { "kubelet": "1.35.4" } },
            "status": status,
        }))
        .unwrap()
    }

    fn ready(status: &str) -> Value {
        json!([{
            "type": "Ready", "status": status, "reason": "R", "message": "",
            "lastTransitionTime": "1970-01-01T00:01:00Z",
        }])
    }

    #[test]
    fn the_stage_follows_from_the_status() {
        let minute = Some(Timestamp::from_second(60).unwrap());
        let (since, node) = ("1970-01-01T00:00:30Z", json!({ "name": "n" }));
        for (status, expected) in [
            (json!(null), MachineStage::WaitingForHost),
            (json!({ "phase": "Pending" }), MachineStage::WaitingForHost),
            (json!({ "host": "h" }), MachineStage::WaitingForHost),
            (json!({ "host": "h", "provisioningSince": since }), MachineStage::Joining),
            (json!({ "provisioningSince": since, "conditions": ready("True") }), MachineStage::Joining),
            (json!({ "nodeRef": node }), MachineStage::Joined { ready_since: None }),
            (
                json!({ "nodeRef": node, "conditions": ready("False") }),
                MachineStage::Joined { ready_since: None },
            ),
            (
                json!({ "nodeRef": node, "conditions": ready("Unknown") }),
                MachineStage::Joined { ready_since: None },
            ),
            (
                json!({ "nodeRef": node, "conditions": ready("True") }),
                MachineStage::Joined { ready_since: minute },
            ),
            (
                json!({ "nodeRef": node, "conditions": ready("True"), "errorReason": "DeleteError" }),
                MachineStage::Lost,
            ),
        ] {
            assert_eq!(observe(&machine(json!({}), status.clone())).stage, expected, "{status}");
        }
    }

    #[test]
    fn a_mark_counts_whatever_its_value() {
        let metadata = json!({
            "name": "a", "creationTimestamp": "1970-01-01T00:00:05Z",
            "annotations": { DELETE_MACHINE: "" }, "deletionTimestamp": "1970-01-01T00:00:09Z",
        });
        let expected = ObservedMachine {
            name: "a".to_owned(),
            created: Timestamp::from_second(5).unwrap(),
            deleting: true,
            stage: MachineStage::WaitingForHost,
            marked: true,
        };
        assert_eq!(observe(&machine(metadata, json!(null))), expected);
        let plain = observe(&machine(json!({ "name": "a" }), json!(null)));
        assert_eq!((plain.created, plain.deleting, plain.marked), (Timestamp::MAX, false, false));
    }
}
