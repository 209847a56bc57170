//! What is written for a step of a Machine: the Machine itself, its Host and its Node.

use jiff::Timestamp;
use kube::ResourceExt;
use serde_json::{Map, Value, json};

use super::api::host_claim::{HostClaimRef, MachineReference};
use super::api::machine::Machine;
use super::condition::whole_seconds;
use super::host_life_writes;
use super::life_observation::MachineObjects;
use super::lifecycle::{self, MachineLifePlan, MachineScene, MachineStep};
use super::node_writes;
use super::object_write::{MachineWrite, ObjectWrite};
use crate::model::api_contract::{HOST_RELEASED_FINALIZER, NODE_DELETED_FINALIZER};

mod refusal;
mod status;

pub use self::refusal::refused;
use self::status::StatusWrite;

/// What is written after a plan.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LifeWrites {
    /// At most one, so that no version is written twice.
    pub write: Option<MachineWrite>,
    /// More is to be decided as soon as it is written.
    pub again: bool,
    /// When a write that may wait is due.
    pub wake: Option<Timestamp>,
}

/// What is written for the plan of a scene of these objects. A step that writes something other than the status of the
/// Machine comes first, the conditions with the next plan: many steps follow each other at once. A status that only tells
/// more about the same state may wait.
pub fn decide(
    objects: &MachineObjects,
    scene: &MachineScene,
    plan: &MachineLifePlan,
    now: Timestamp,
) -> LifeWrites {
    let status = status::written(objects, scene, plan, now);
    let machine = &*objects.machine;
    match &plan.step {
        // The status contains the reason before the Machine is deleted.
        Some(MachineStep::Delete(_)) => deletion(machine, status),
        None if plan.lost && scene.machine.owned => deletion(machine, status),
        Some(step) => match elsewhere(objects, scene, step, now) {
            Some(write) => LifeWrites { write: Some(write), again: true, wake: None },
            None => told(status, changes_status(step)),
        },
        None => told(status, false),
    }
}

fn deletion(machine: &Machine, status: Option<StatusWrite>) -> LifeWrites {
    let write = status.map_or_else(|| ObjectWrite::delete(machine), |status| status.write);
    LifeWrites { write: Some(MachineWrite::Machine(write)), again: true, wake: None }
}

fn told(status: Option<StatusWrite>, again: bool) -> LifeWrites {
    match status {
        None => LifeWrites::default(),
        Some(StatusWrite { due: Some(due), .. }) => LifeWrites { wake: Some(due), ..LifeWrites::default() },
        Some(StatusWrite { write, due: None }) => {
            LifeWrites { write: Some(MachineWrite::Machine(write)), again, wake: None }
        }
    }
}

/// Whether the step is a part of the status.
fn changes_status(step: &MachineStep) -> bool {
    matches!(
        step,
        MachineStep::NoteHost(_)
            | MachineStep::ForgetHost(_)
            | MachineStep::LinkNode
            | MachineStep::AnnounceDeletion(_)
            | MachineStep::MarkDrained(_)
    )
}

/// The write of a step outside of the status of the Machine. None for a step of workers or pods.
fn elsewhere(
    objects: &MachineObjects,
    scene: &MachineScene,
    step: &MachineStep,
    now: Timestamp,
) -> Option<MachineWrite> {
    let machine = &*objects.machine;
    match step {
        MachineStep::AddFinalizers => Some(finalizers(machine, true)),
        MachineStep::RemoveFinalizers => Some(finalizers(machine, false)),
        MachineStep::SetProviderId(id) => {
            let spec = Map::from_iter([("spec".to_owned(), json!({ "providerID": id }))]);
            Some(MachineWrite::Machine(ObjectWrite::patch(machine, Map::new(), spec)))
        }
        MachineStep::ClaimHost { token, .. } => {
            let machine = MachineReference {
                namespace: machine.namespace().unwrap_or_default(),
                name: machine.name_any(),
                uid: scene.machine.uid.clone(),
            };
            let since = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(whole_seconds(now));
            let claim = HostClaimRef { machine, token: *token, since };
            host_life_writes::claim(objects.host.as_deref()?, claim, now).map(MachineWrite::Host)
        }
        MachineStep::ChangeNode(change) => {
            Some(MachineWrite::Node(node_writes::change(objects.node.as_deref()?, change)))
        }
        MachineStep::Cordon => Some(MachineWrite::Node(node_writes::cordon(objects.node.as_deref()?))),
        MachineStep::NoteHost(_)
        | MachineStep::ForgetHost(_)
        | MachineStep::Begin(..)
        | MachineStep::Cancel(_)
        | MachineStep::LinkNode
        | MachineStep::Delete(_)
        | MachineStep::ListPods
        | MachineStep::Evict(_)
        | MachineStep::AnnounceDeletion(_)
        | MachineStep::DeletePods(_)
        | MachineStep::MarkDrained(_) => None,
    }
}

/// Those of others stay.
fn finalizers(machine: &Machine, present: bool) -> MachineWrite {
    let own = [HOST_RELEASED_FINALIZER, NODE_DELETED_FINALIZER];
    let others = machine.finalizers().iter().map(String::as_str).filter(|one| !own.contains(one));
    let all: Vec<&str> = others.chain(own.into_iter().filter(|_| present)).collect();
    let metadata: Map<String, Value> = Map::from_iter([("finalizers".to_owned(), json!(all))]);
    MachineWrite::Machine(ObjectWrite::patch(machine, metadata, Map::new()))
}

/// The plan after a Node is linked: what it observes is written together with the link.
fn after_link(scene: &MachineScene, now: Timestamp) -> MachineLifePlan {
    let mut scene = scene.clone();
    scene.machine.joined = true;
    lifecycle::next(&scene, now)
}

#[cfg(test)]
mod tests;
