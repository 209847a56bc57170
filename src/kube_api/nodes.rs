//! Reading Nodes, and putting labels, annotations and taints on them.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Node, Taint};
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::{Map, Value, json};

use super::FIELD_MANAGER;
use super::client::ApiError;
use crate::model::name::HostName;

/// How often a change that lost a race is decided again.
const TRIES: usize = 5;

/// What must be on a Node, and what must not. What is not mentioned is left alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks {
    /// Key to value; `None` takes the label away.
    pub labels: BTreeMap<String, Option<String>>,
    /// Key to value; `None` takes the annotation away.
    pub annotations: BTreeMap<String, Option<String>>,
    /// To be there with this value.
    pub taints: BTreeMap<TaintKey, String>,
    /// To be gone, whatever their value.
    pub without_taints: BTreeSet<TaintKey>,
}

/// What makes two taints the same one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaintKey {
    /// `node-role.kubernetes.io/etcd`.
    pub key: String,
    /// `NoSchedule`, `PreferNoSchedule`, `NoExecute`.
    pub effect: String,
}

/// The Node of this name, if there is one.
///
/// # Errors
/// When the API could not say.
pub async fn get(client: &Client, name: &HostName) -> Result<Option<Node>, ApiError> {
    let api: Api<Node> = Api::all(client.clone());
    api.get_opt(name.as_str()).await.map_err(|error| ApiError::new("get", object(name), error))
}

/// What a machine offers to pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Logical processors.
    pub cpus: u32,
    /// Bytes.
    pub memory: u64,
    /// Bytes free for images, logs and volumes.
    pub storage: u64,
    /// Pods at a time.
    pub pods: u32,
}

/// Gives a Node that no kubelet has reported for the capacity of its machine; one that has some is left alone.
///
/// A kubelet admits pods by the Node of the API where there is one. One that an operator wrote has no capacity, and
/// a static pod that is refused for want of it is not tried again.
///
/// # Errors
/// When there is no such Node, or the API did not take it.
pub async fn announce(client: &Client, name: &HostName, capacity: Capacity) -> Result<(), ApiError> {
    let api: Api<Node> = Api::all(client.clone());
    let node = api.get(name.as_str()).await.map_err(|error| ApiError::new("get", object(name), error))?;
    if node.status.and_then(|status| status.capacity).is_some_and(|known| !known.is_empty()) {
        return Ok(());
    }
    let resources = json!({
        "cpu": capacity.cpus.to_string(),
        "memory": capacity.memory.to_string(),
        "ephemeral-storage": capacity.storage.to_string(),
        "pods": capacity.pods.to_string(),
    });
    let patch = Patch::Merge(json!({ "status": { "capacity": resources, "allocatable": resources } }));
    let patched = api.patch_status(name.as_str(), &PatchParams::default(), &patch).await;
    patched.map(drop).map_err(|error| ApiError::new("patch", format!("{}/status", object(name)), error))
}

/// All Nodes.
///
/// # Errors
/// When the API could not say.
pub async fn list(client: &Client) -> Result<Vec<Node>, ApiError> {
    let api: Api<Node> = Api::all(client.clone());
    let listed =
        api.list(&ListParams::default()).await.map_err(|error| ApiError::new("list", "nodes", error))?;
    Ok(listed.items)
}

/// Makes a Node bear these marks; true if anything had to change. A Node that changes meanwhile is read again.
///
/// # Errors
/// [`ApiError::NotFound`] when there is no such Node, [`ApiError::Conflict`] when it never held still.
pub async fn mark(client: &Client, name: &HostName, marks: &Marks) -> Result<bool, ApiError> {
    let api: Api<Node> = Api::all(client.clone());
    let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let mut tries = 0;
    loop {
        tries += 1;
        let node = api.get(name.as_str()).await.map_err(|error| ApiError::new("get", object(name), error))?;
        let Some(patch) = patch(&node, marks) else { return Ok(false) };
        let patched = api.patch(name.as_str(), &parameters, &Patch::Merge(patch)).await;
        match patched.map_err(|error| ApiError::new("patch", object(name), error)) {
            Ok(_) => return Ok(true),
            Err(ApiError::Conflict { .. }) if tries < TRIES => {}
            Err(error) => return Err(error),
        }
    }
}

fn object(name: &HostName) -> String {
    format!("node/{name}")
}

/// The merge patch (RFC 7386) that brings a Node to these marks; `None` when it bears them already.
///
/// It holds for the version of the Node that it was made from only: the list of taints has more than one owner,
/// and a merge patch replaces it whole.
pub fn patch(node: &Node, marks: &Marks) -> Option<Value> {
    let labels = differing(node.labels(), &marks.labels);
    let annotations = differing(node.annotations(), &marks.annotations);
    let present = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    let wanted = taints(present, marks);
    let mut patch = json!({ "metadata": { "resourceVersion": node.metadata.resource_version } });
    if labels.is_empty() && annotations.is_empty() && wanted == present {
        return None;
    }
    if !labels.is_empty() {
        patch["metadata"]["labels"] = Value::Object(labels);
    }
    if !annotations.is_empty() {
        patch["metadata"]["annotations"] = Value::Object(annotations);
    }
    if wanted != present {
        patch["spec"] = json!({ "taints": wanted });
    }
    Some(patch)
}

fn differing(
    present: &BTreeMap<String, String>,
    wanted: &BTreeMap<String, Option<String>>,
) -> Map<String, Value> {
    wanted
        .iter()
        .filter(|(key, value)| present.get(*key) != value.as_ref())
        .map(|(key, value)| (key.clone(), value.clone().map_or(Value::Null, Value::String)))
        .collect()
}

/// The present ones in their order, corrected, then the missing ones.
fn taints(present: &[Taint], marks: &Marks) -> Vec<Taint> {
    let key = |taint: &Taint| TaintKey { key: taint.key.clone(), effect: taint.effect.clone() };
    let mut missing = marks.taints.clone();
    let mut taints: Vec<Taint> = present
        .iter()
        .filter(|taint| !marks.without_taints.contains(&key(taint)))
        .cloned()
        .map(|taint| match missing.remove(&key(&taint)) {
            Some(value) if taint.value.as_deref().unwrap_or_default() != value => {
                new_taint(key(&taint), value)
            }
            Some(_) | None => taint,
        })
        .collect();
    taints.extend(missing.into_iter().map(|(key, value)| new_taint(key, value)));
    taints
}

fn new_taint(key: TaintKey, value: String) -> Taint {
    let value = Some(value).filter(|value| !value.is_empty());
    Taint { key: key.key, effect: key.effect, value, time_added: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> Node {
        serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": "n1", "resourceVersion": "7",
                "labels": { "kept": "yes", "node-role.kubernetes.io/etcd": "", "old": "1" },
                "annotations": { "metalform.dev/ssh-host": "192.0.2.11" },
            },
            "spec": { "taints": [
                { "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z" },
                { "key": "role", "effect": "NoSchedule", "value": "infra" },
            ]},
        }))
        .unwrap()
    }

    fn taint(key: &str) -> TaintKey {
        TaintKey { key: key.to_owned(), effect: "NoSchedule".to_owned() }
    }

    fn pairs(pairs: &[(&str, Option<&str>)]) -> BTreeMap<String, Option<String>> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), value.map(str::to_owned))).collect()
    }

    #[test]
    fn a_node_that_bears_the_marks_is_left_alone() {
        let marks = Marks {
            labels: pairs(&[("node-role.kubernetes.io/etcd", Some("")), ("absent", None)]),
            annotations: pairs(&[("metalform.dev/ssh-host", Some("192.0.2.11"))]),
            taints: BTreeMap::from([
                (taint("role"), "infra".to_owned()),
                (taint("node.kubernetes.io/not-ready"), String::new()),
            ]),
            without_taints: BTreeSet::from([taint("absent")]),
        };
        assert_eq!(patch(&node(), &marks), None);
    }

    #[test]
    fn a_patch_says_only_what_differs_and_keeps_the_taints_of_others() {
        let marks = Marks {
            labels: pairs(&[("old", None), ("node-role.kubernetes.io/etcd", Some("")), ("new", Some("1"))]),
            annotations: pairs(&[]),
            taints: BTreeMap::from([(taint("new"), String::new())]),
            without_taints: BTreeSet::from([taint("role")]),
        };
        assert_eq!(
            patch(&node(), &marks),
            Some(json!({
                "metadata": { "resourceVersion": "7", "labels": { "old": null, "new": "1" } },
                "spec": { "taints": [
                    { "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z" },
                    { "key": "new", "effect": "NoSchedule" },
                ]},
            }))
        );
    }

    #[test]
    fn a_taint_with_another_value_is_corrected() {
        let marks =
            Marks { taints: BTreeMap::from([(taint("role"), "etcd".to_owned())]), ..Marks::default() };
        let patch = patch(&node(), &marks).unwrap();
        assert_eq!(
            patch["spec"]["taints"][1],
            json!({ "key": "role", "effect": "NoSchedule", "value": "etcd" })
        );
    }
}
