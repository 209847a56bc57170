//! From objects of the API to the input of the rollout planner.

use std::str::FromStr;
use std::sync::Arc;

use jiff::SignedDuration;
use kube::ResourceExt;

use crate::machine::api::machine::Machine;
use crate::machine::api::machine_deployment::MachineDeployment;
use crate::machine::api::machine_set::MachineSet;
use crate::machine::api::machine_template::MachineTemplate;
use crate::machine::api::rolling_update::RollingUpdateError;
use crate::machine::api::rollout_record::RolloutRecord;
use crate::machine::machine_observation::{created, min_ready, observe_all};
use crate::machine::ownership::{Ownership, ownership};
use crate::machine::revision_hash::RevisionHash;
use crate::machine::rollout::{ObservedSet, RolloutGoal, RolloutWorld};
use crate::model::api_contract::{
    DESIRED_REPLICAS, MACHINE_TEMPLATE_HASH, MAX_REPLICAS, REVISION, REVISION_HISTORY,
};

/// What the rollout is for.
///
/// # Errors
/// When the strategy is invalid.
pub(super) fn goal(
    deployment: &MachineDeployment,
    deleting: bool,
) -> Result<RolloutGoal, RollingUpdateError> {
    let spec = &deployment.spec;
    let (max_surge, max_unavailable) = spec.strategy.rolling_update.quotas()?;
    let deadline = SignedDuration::from_secs(i64::from(spec.progress_deadline_seconds.max(0)));
    Ok(RolloutGoal {
        replicas: spec.replicas(),
        max_surge,
        max_unavailable,
        paused: spec.paused,
        deleting,
        min_ready: min_ready(spec.min_ready_seconds),
        // Kubernetes `HasProgressDeadline`.
        progress_deadline: (spec.progress_deadline_seconds != i32::MAX).then_some(deadline),
        revision_history_limit: u32::try_from(spec.revision_history_limit).unwrap_or_default(),
        hash: hash(&spec.template),
    })
}

/// What is known, with the sets that the MachineDeployment controls.
pub(super) fn world(
    deployment: &MachineDeployment,
    own: &[&MachineSet],
    machines: &[Arc<Machine>],
    free_hosts: u32,
) -> RolloutWorld {
    let progress = deployment.status.as_ref().and_then(|status| status.rollout.as_ref());
    RolloutWorld {
        sets: own.iter().map(|set| observed(set, machines)).collect(),
        free_hosts,
        progress: progress.map(RolloutRecord::progress),
    }
}

fn observed(set: &MachineSet, machines: &[Arc<Machine>]) -> ObservedSet {
    let uid = set.uid().unwrap_or_default();
    let label = set.labels().get(MACHINE_TEMPLATE_HASH);
    // An orphan is one that the set adopts: it holds a host already.
    let is_own = |machine: &Machine| ownership(machine, &uid, &set.spec.selector) != Ownership::Foreign;
    let acted_on = set.status.as_ref().map(|status| status.observed_generation);
    let history = set.annotations().get(REVISION_HISTORY).map(String::as_str).unwrap_or_default();
    ObservedSet {
        name: set.name_any(),
        created: created(set),
        hash: label.map_or_else(|| hash(&set.spec.template), |label| RevisionHash::from_label(label)),
        deleting: set.metadata.deletion_timestamp.is_some(),
        replicas: set.spec.replicas(),
        observed: acted_on.is_some() && acted_on == set.metadata.generation,
        revision: number(set, REVISION).unwrap_or_default(),
        history: history.split(',').filter_map(|one| one.trim().parse().ok()).collect(),
        desired: number(set, DESIRED_REPLICAS),
        most: number(set, MAX_REPLICAS),
        machines: observe_all(machines, is_own),
    }
}

/// An annotation that is no number is none: the next write replaces it.
fn number<T: FromStr>(set: &MachineSet, annotation: &str) -> Option<T> {
    set.annotations().get(annotation)?.parse().ok()
}

fn hash(template: &MachineTemplate) -> RevisionHash {
    // A template has no map whose keys are not strings: it is always JSON.
    RevisionHash::of_template(&serde_json::to_value(template).unwrap_or_default())
}
