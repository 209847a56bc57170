//! What is written into a MachineDeployment itself.

use jiff::Timestamp;
use kube::ResourceExt;
use serde_json::{Map, json};

use crate::machine::api::machine_deployment::{MachineDeployment, MachineDeploymentStatus};
use crate::machine::api::rollout_record::RolloutRecord;
use crate::machine::condition::{self, NewCondition, whole_seconds};
use crate::machine::object_write::ObjectWrite;
use crate::machine::rollout::RolloutPlan;
use crate::model::api_contract::REVISION;

/// The annotation with the revision, if it is another one.
pub(super) fn revision(
    deployment: &MachineDeployment,
    revision: Option<u64>,
) -> Option<ObjectWrite<MachineDeployment>> {
    let revision = revision?.to_string();
    if deployment.annotations().get(REVISION) == Some(&revision) {
        return None;
    }
    let annotations = ("annotations".to_owned(), json!({ REVISION: revision }));
    Some(ObjectWrite::patch(deployment, Map::from_iter([annotations]), Map::new()))
}

/// The status after the plan. Conditions of types that are not of a rollout stay.
pub(super) fn status(
    deployment: &MachineDeployment,
    plan: &RolloutPlan,
    now: Timestamp,
) -> MachineDeploymentStatus {
    let count = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
    let generation = deployment.metadata.generation.unwrap_or_default();
    let before = deployment.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
    let mut progress = plan.progress.clone();
    progress.since = whole_seconds(progress.since);
    let own = plan.conditions.iter().map(|one| NewCondition {
        kind: one.kind.name(),
        status: one.status,
        reason: one.reason,
        message: one.message.clone(),
    });
    MachineDeploymentStatus {
        observed_generation: generation,
        label_selector: deployment.spec.selector.to_string(),
        replicas: count(plan.counts.replicas),
        updated_replicas: count(plan.counts.updated),
        ready_replicas: count(plan.counts.ready),
        available_replicas: count(plan.counts.available),
        unavailable_replicas: count(plan.counts.unavailable),
        conditions: condition::set(&before, own, generation, now),
        rollout: Some(RolloutRecord::of(&progress)),
    }
}
