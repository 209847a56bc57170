//! The status of a Machine.

use std::collections::BTreeSet;
use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, NodeAddress, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::ResourceExt;

use super::after_link;
use crate::kube_api::node_addresses::recorded_addresses;
use crate::machine::api::machine::Machine;
use crate::machine::api::machine_status::{MachineError, MachineOperation, MachinePhase, MachineStatus};
use crate::machine::api::version::MachineVersions;
use crate::machine::condition::{self, NewCondition, whole_seconds};
use crate::machine::life_observation::{DRAIN_TIMEOUT, MachineObjects};
use crate::machine::lifecycle::{
    MachineCondition, MachineConditionKind, MachineLifePlan, MachineScene, MachineStep, phase,
};
use crate::machine::object_write::ObjectWrite;
use crate::model::api_contract::CONTROL_PLANE_IP;

/// A status that only tells more is written this long after the last write: each one costs every API server and etcd
/// member, which a deployment needs too.
const PAUSE: SignedDuration = SignedDuration::from_secs(2);

/// A status that differs from the present one.
pub(super) struct StatusWrite {
    pub(super) write: ObjectWrite<Machine>,
    /// It may wait until then.
    pub(super) due: Option<Timestamp>,
}

/// The status after the plan, and after its step if that is a part of the status; `None` if it does not differ.
pub(super) fn written(
    objects: &MachineObjects,
    scene: &MachineScene,
    plan: &MachineLifePlan,
    now: Timestamp,
) -> Option<StatusWrite> {
    let machine = &*objects.machine;
    let before = machine.status.clone().unwrap_or_default();
    let mut status = before.clone();
    status.observed_generation = machine.metadata.generation;
    let mut conditions = plan.conditions.clone();
    let mut others = Vec::new();
    match &plan.step {
        Some(MachineStep::NoteHost(host)) => status.host = Some(host.to_string()),
        Some(MachineStep::ForgetHost(_)) => status.host = None,
        Some(MachineStep::LinkNode) => {
            status.node_ref = objects.node.as_deref().map(reference);
            conditions = after_link(scene, now).conditions;
        }
        Some(MachineStep::AnnounceDeletion(_)) => others.extend(announcement(plan)),
        Some(MachineStep::Delete(error)) => failed(&mut status, *error, scene),
        _ => {}
    }
    of_host(&mut status, objects, scene);
    let deleting = scene.machine.deleting_since.is_some();
    let was_ready = matches!(before.phase, Some(MachinePhase::Running));
    let generation = status.observed_generation.unwrap_or_default();
    let own = conditions.iter().map(|condition| NewCondition {
        kind: condition.kind.name(),
        status: condition.status,
        reason: condition.reason.name(),
        message: condition.reason.to_string(),
    });
    status.conditions = condition::set(&before.conditions, own.chain(others), generation, now);
    status.phase = Some(phase(&conditions, deleting, status.error_reason.is_some(), was_ready));
    status.last_operation = Some(operation(&status, &conditions, deleting, now));
    if status != before {
        status.last_updated = Some(Time(whole_seconds(now)));
    }
    let write = ObjectWrite::status(machine, machine.status.as_ref(), &status)?;
    Some(StatusWrite { write, due: due(&before, &status, now) })
}

/// Where neither a condition nor what belongs to the Machine changes, but what is told about it.
fn due(before: &MachineStatus, after: &MachineStatus, now: Timestamp) -> Option<Timestamp> {
    let last = before.last_updated.as_ref()?.0;
    let is_recent = last <= now && now.duration_since(last) < PAUSE;
    if !is_recent || without_words(before) != without_words(after) {
        return None;
    }
    last.checked_add(PAUSE).ok()
}

fn without_words(status: &MachineStatus) -> MachineStatus {
    let condition = |one: &Condition| Condition { message: String::new(), ..one.clone() };
    MachineStatus {
        conditions: status.conditions.iter().map(condition).collect(),
        addresses: Vec::new(),
        versions: None,
        last_operation: None,
        last_updated: None,
        ..status.clone()
    }
}

/// What follows from its Host and its Node.
fn of_host(status: &mut MachineStatus, objects: &MachineObjects, scene: &MachineScene) {
    let claim = scene.host.as_ref().and_then(|host| host.claim.as_ref());
    let claim = claim.filter(|claim| claim.machine_uid == scene.machine.uid);
    if let Some(claim) = claim {
        status.provisioning_since = Some(Time(claim.since));
    } else if scene.machine.deleting_since.is_none() {
        status.provisioning_since = None;
        status.addresses = Vec::new();
    }
    let Some(node) = objects.node.as_deref().filter(|_| claim.is_some() && is_own(scene)) else { return };
    let address = objects.host.as_deref().map(|host| host.spec.address.as_str()).unwrap_or_default();
    status.addresses = addresses(node, address);
    let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
    // Empty before the kubelet registers, which the API refuses as a version.
    let kubelet = info.map(|info| info.kubelet_version.clone()).filter(|version| !version.is_empty());
    status.versions = kubelet.map(|kubelet| MachineVersions { kubelet, control_plane: String::new() });
}

fn is_own(scene: &MachineScene) -> bool {
    scene.own_node().is_some()
}

/// Those that metalform has recorded, that on the control plane first; the address of the Host where none is. What a
/// kubelet reports is none: it could be that of another node.
fn addresses(node: &Node, host: &str) -> Vec<NodeAddress> {
    let annotations = node.annotations();
    let first: Option<IpAddr> = annotations.get(CONTROL_PLANE_IP).and_then(|text| text.parse().ok());
    let recorded: BTreeSet<IpAddr> = recorded_addresses(annotations);
    let others = recorded.into_iter().filter(|address| Some(*address) != first);
    let mut internal: Vec<IpAddr> = first.into_iter().chain(others).collect();
    if internal.is_empty() {
        internal.extend(host.parse::<IpAddr>().ok());
    }
    let internal = internal.into_iter().map(|address| ("InternalIP", address.to_string()));
    let all = internal.chain([("Hostname", node.name_any())]);
    all.map(|(type_, address)| NodeAddress { type_: type_.to_owned(), address }).collect()
}

fn reference(node: &Node) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Node".to_owned()),
        name: Some(node.name_any()),
        uid: node.uid(),
        ..ObjectReference::default()
    }
}

/// The same words as those of the condition Drained.
fn announcement(plan: &MachineLifePlan) -> Option<NewCondition> {
    let drained = plan.conditions.iter().find(|one| one.kind == MachineConditionKind::Drained)?;
    Some(NewCondition {
        kind: DRAIN_TIMEOUT,
        status: Some(true),
        reason: drained.reason.name(),
        message: drained.reason.to_string(),
    })
}

fn failed(status: &mut MachineStatus, error: MachineError, scene: &MachineScene) {
    let host = scene.host.as_ref().map(|host| host.name.to_string()).unwrap_or_default();
    status.error_reason = Some(error);
    status.error_message = Some(match error {
        MachineError::JoinClusterTimeoutError => format!("node {host} did not join in time"),
        other => format!("{other:?}"),
    });
}

/// For clients of machine-controller's API.
fn operation(
    status: &MachineStatus,
    conditions: &[MachineCondition],
    deleting: bool,
    now: Timestamp,
) -> MachineOperation {
    let holds =
        |kind| conditions.iter().any(|one: &MachineCondition| one.kind == kind && one.status == Some(true));
    let state = if status.error_reason.is_some() && !deleting {
        "Failed"
    } else if !deleting && holds(MachineConditionKind::Ready) {
        "Successful"
    } else {
        "Processing"
    };
    let unmet = conditions
        .iter()
        .find(|one| one.kind != MachineConditionKind::Ready && one.status != Some(true))
        .or_else(|| conditions.iter().find(|one| one.kind == MachineConditionKind::Ready));
    let (type_, state) = (if deleting { "Delete" } else { "Create" }.to_owned(), state.to_owned());
    let earlier = status.last_operation.as_ref();
    let is_same = |earlier: &&MachineOperation| {
        earlier.state.as_ref() == Some(&state) && earlier.type_.as_ref() == Some(&type_)
    };
    let since = earlier.filter(is_same).and_then(|earlier| earlier.last_updated.clone());
    MachineOperation {
        description: unmet.map(|condition| condition.reason.to_string()),
        last_updated: Some(since.unwrap_or_else(|| Time(whole_seconds(now)))),
        state: Some(state),
        type_: Some(type_),
    }
}
