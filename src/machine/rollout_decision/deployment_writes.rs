//! What is written into a MachineDeployment itself.

use jiff::Timestamp;
use kube::ResourceExt;
use serde_json::{Map, json};

use super::remediation::REMEDIATION_ALLOWED;
use crate::machine::api::machine_deployment::{MachineDeployment, MachineDeploymentStatus};
use crate::machine::api::rollout_record::RolloutRecord;
use crate::machine::condition::{self, NewCondition, whole_seconds};
use crate::machine::expected_capacity;
use crate::machine::object_write::ObjectWrite;
use crate::machine::pool_offer::ExpectedNode;
use crate::machine::rollout::RolloutPlan;
use crate::model::api_contract::REVISION;

/// The annotations that change: the revision, and what is expected of a Node; `None` leaves that as it is.
pub(super) fn annotations(
    deployment: &MachineDeployment,
    revision: Option<u64>,
    expected: Option<&ExpectedNode>,
) -> Option<ObjectWrite<MachineDeployment>> {
    let present = deployment.annotations();
    let expected = expected.map(|expected| expected_capacity::change(present, expected));
    let mut changed = expected.unwrap_or_default();
    let revision = revision.map(|revision| revision.to_string());
    if revision.is_some() && present.get(REVISION) != revision.as_ref() {
        changed.insert(REVISION.to_owned(), revision);
    }
    if changed.is_empty() {
        return None;
    }
    let annotations = ("annotations".to_owned(), json!(changed));
    Some(ObjectWrite::patch(deployment, Map::from_iter([annotations]), Map::new()))
}

/// The status after the plan. `health` is the condition of a declared remediation, which goes with it. Conditions of other
/// types stay.
pub(super) fn status(
    deployment: &MachineDeployment,
    plan: &RolloutPlan,
    health: Option<NewCondition>,
    now: Timestamp,
) -> MachineDeploymentStatus {
    let count = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
    let generation = deployment.metadata.generation.unwrap_or_default();
    let mut before = deployment.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
    before.retain(|condition| condition.type_ != REMEDIATION_ALLOWED || health.is_some());
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
        conditions: condition::set(&before, own.chain(health), generation, now),
        rollout: Some(RolloutRecord::of(&progress)),
    }
}
