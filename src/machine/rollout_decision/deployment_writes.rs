//! What is written into a MachineDeployment itself.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::ResourceExt;
use serde_json::{Map, json};

use crate::machine::api::machine_deployment::{MachineDeployment, MachineDeploymentStatus};
use crate::machine::api::rollout_record::RolloutRecord;
use crate::machine::object_write::ObjectWrite;
use crate::machine::rollout::{RolloutCondition, RolloutPlan};
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
    let now = whole_seconds(now);
    let count = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
    let generation = deployment.metadata.generation.unwrap_or_default();
    let before = deployment.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
    let mut progress = plan.progress.clone();
    progress.since = whole_seconds(progress.since);
    let own = plan.conditions.iter().map(|condition| {
        let earlier = before.iter().find(|one| one.type_ == condition.kind.name());
        with_times(condition, earlier, generation, now)
    });
    let own: Vec<Condition> = own.collect();
    let is_own = |condition: &&Condition| own.iter().any(|one| one.type_ == condition.type_);
    let others: Vec<Condition> = before.iter().filter(|one| !is_own(one)).cloned().collect();
    MachineDeploymentStatus {
        observed_generation: generation,
        label_selector: deployment.spec.selector.to_string(),
        replicas: count(plan.counts.replicas),
        updated_replicas: count(plan.counts.updated),
        ready_replicas: count(plan.counts.ready),
        available_replicas: count(plan.counts.available),
        unavailable_replicas: count(plan.counts.unavailable),
        conditions: own.into_iter().chain(others).collect(),
        rollout: Some(RolloutRecord::of(&progress)),
    }
}

fn with_times(
    condition: &RolloutCondition,
    earlier: Option<&Condition>,
    generation: i64,
    now: Timestamp,
) -> Condition {
    let status = match condition.status {
        Some(true) => "True",
        Some(false) => "False",
        None => "Unknown",
    };
    let since = earlier.filter(|earlier| earlier.status == status);
    Condition {
        type_: condition.kind.name().to_owned(),
        status: status.to_owned(),
        reason: condition.reason.to_owned(),
        message: condition.message.clone(),
        observed_generation: Some(generation),
        last_transition_time: since.map_or(Time(now), |earlier| earlier.last_transition_time.clone()),
    }
}

/// As the API stores times: what is read back is what was written.
fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
