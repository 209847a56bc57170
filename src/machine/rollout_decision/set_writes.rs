//! The MachineSets that a rollout creates and changes.

use std::collections::BTreeMap;

use kube::ResourceExt;
use serde_json::{Map, Value, json};

use crate::machine::api::machine_deployment::MachineDeployment;
use crate::machine::api::machine_set::{DeletePolicy, MachineSet, MachineSetSpec};
use crate::machine::object_name::machine_set_name;
use crate::machine::object_write::ObjectWrite;
use crate::machine::ownership::controller_reference;
use crate::machine::rollout::{NewSet, RolloutGoal, SetChange};
use crate::model::api_contract::{
    DESIRED_REPLICAS, EXPECTED_CAPACITY, EXPECTED_CAPACITY_PREFIX, FOREGROUND_DELETION, LAST_APPLIED,
    MACHINE_TEMPLATE_HASH, MAX_REPLICAS, REVISION, REVISION_HISTORY,
};

/// Annotations of a MachineDeployment that its sets do not have: their own, what `kubectl apply` recorded, and what is
/// expected of a Node, as all with [`EXPECTED_CAPACITY_PREFIX`].
const NOT_COPIED: [&str; 6] =
    [REVISION, REVISION_HISTORY, DESIRED_REPLICAS, MAX_REPLICAS, LAST_APPLIED, EXPECTED_CAPACITY];

/// The set of the template.
pub(super) fn new_set(deployment: &MachineDeployment, new: &NewSet) -> MachineSet {
    let spec = &deployment.spec;
    let hash = || (MACHINE_TEMPLATE_HASH.to_owned(), new.hash.to_string());
    let (mut template, mut selector) = (spec.template.clone(), spec.selector.clone());
    template.metadata.labels.extend([hash()]);
    selector.match_labels.extend([hash()]);
    let labels = template.metadata.labels.clone();
    let name = machine_set_name(&deployment.name_any(), &new.hash);
    let mut set = MachineSet::new(
        &name,
        MachineSetSpec {
            replicas: i32::try_from(new.replicas).unwrap_or(i32::MAX),
            min_ready_seconds: spec.min_ready_seconds,
            delete_policy: DeletePolicy::default(),
            selector,
            template,
        },
    );
    let own = [
        (REVISION, new.revision.to_string()),
        (DESIRED_REPLICAS, new.desired.to_string()),
        (MAX_REPLICAS, new.most.to_string()),
    ];
    let own = own.map(|(key, value)| (key.to_owned(), value));
    set.metadata.annotations = Some(copied(deployment).chain(own).collect());
    set.metadata.namespace = deployment.namespace();
    set.metadata.labels = Some(labels);
    set.metadata.finalizers = Some(vec![FOREGROUND_DELETION.to_owned()]);
    set.metadata.owner_references = controller_reference(deployment).map(|owner| vec![owner]);
    set
}

/// Brings a set to what the plan and the MachineDeployment define; `None` if it has all of it. `minReadySeconds` is that
/// of the MachineDeployment in every set; its annotations are those of the set of the template, where they are never
/// removed (Kubernetes, `SetNewReplicaSetAnnotations`).
pub(super) fn change(
    deployment: &MachineDeployment,
    goal: &RolloutGoal,
    set: &MachineSet,
    change: Option<&SetChange>,
) -> Option<ObjectWrite<MachineSet>> {
    let mut annotations = BTreeMap::new();
    let mut spec = Map::new();
    if !goal.deleting {
        let is_current =
            set.labels().get(MACHINE_TEMPLATE_HASH).map(String::as_str) == Some(goal.hash.as_str());
        annotations.extend(copied(deployment).filter(|_| is_current));
        if set.spec.min_ready_seconds != deployment.spec.min_ready_seconds {
            spec.insert("minReadySeconds".to_owned(), json!(deployment.spec.min_ready_seconds));
        }
    }
    if let Some(change) = change {
        annotations.extend(records(change));
        if change.to != set.spec.replicas() {
            spec.insert("replicas".to_owned(), json!(change.to));
        }
    }
    annotations.retain(|key, value| set.annotations().get(key) != Some(value));
    if annotations.is_empty() && spec.is_empty() {
        return None;
    }
    let member = |key: &str, value: Value| (key.to_owned(), value);
    let metadata = (!annotations.is_empty()).then(|| member("annotations", json!(annotations)));
    let spec = (!spec.is_empty()).then(|| member("spec", Value::Object(spec)));
    Some(ObjectWrite::patch(set, metadata.into_iter().collect(), spec.into_iter().collect()))
}

/// The annotations of a change; what it does not have stays as it is.
fn records(change: &SetChange) -> impl Iterator<Item = (String, String)> {
    let history: Vec<String> = change.history.iter().map(ToString::to_string).collect();
    let records = [
        (REVISION, (change.revision > 0).then(|| change.revision.to_string())),
        (REVISION_HISTORY, (!history.is_empty()).then(|| history.join(","))),
        (DESIRED_REPLICAS, change.desired.map(|count| count.to_string())),
        (MAX_REPLICAS, change.most.map(|count| count.to_string())),
    ];
    records.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)))
}

fn copied(deployment: &MachineDeployment) -> impl Iterator<Item = (String, String)> {
    let all = deployment.annotations().iter();
    let is_copied = |key: &str| !NOT_COPIED.contains(&key) && !key.starts_with(EXPECTED_CAPACITY_PREFIX);
    all.filter(move |(key, _)| is_copied(key)).map(|(key, value)| (key.clone(), value.clone()))
}
