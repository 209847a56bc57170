//! Nodes: reading them, setting annotations, capacity and addresses, and removing a taint.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{Node, NodeAddress, NodeCondition, Taint};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::{Map, Value, json};

use super::FIELD_MANAGER;
use super::client::ApiError;
use super::node_addresses;
use crate::model::name::HostName;
use crate::model::node::is_bare;

/// Attempts at a change that conflicts with others.
const TRIES: usize = 5;

/// Annotations to set, by key; `None` removes one. Others are left alone.
pub type Annotations = BTreeMap<String, Option<String>>;

/// Resources of a machine for pods.
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

/// The Node of this name, if it exists.
///
/// # Errors
/// When the API does not answer or refuses.
pub async fn get(client: &Client, name: &HostName) -> Result<Option<Node>, ApiError> {
    let api: Api<Node> = Api::all(client.clone());
    api.get_opt(name.as_str()).await.map_err(|error| ApiError::new("get", object(name), error))
}

/// All Nodes.
///
/// # Errors
/// When the API does not answer or refuses.
pub async fn list(client: &Client) -> Result<Vec<Node>, ApiError> {
    let api: Api<Node> = Api::all(client.clone());
    let listed =
        api.list(&ListParams::default()).await.map_err(|error| ApiError::new("list", "nodes", error))?;
    Ok(listed.items)
}

/// The recorded addresses of every Node, by its name.
///
/// # Errors
/// When the API does not answer or refuses.
pub async fn recorded_addresses(client: &Client) -> Result<BTreeMap<HostName, BTreeSet<IpAddr>>, ApiError> {
    let api: Api<Node> = Api::all(client.clone());
    let listed = api.list_metadata(&ListParams::default()).await;
    let listed = listed.map_err(|error| ApiError::new("list", "nodes", error))?;
    let recorded = |node: &_| {
        let name = ResourceExt::name_any(node).parse().ok()?;
        Some((name, node_addresses::recorded_addresses(ResourceExt::annotations(node))))
    };
    Ok(listed.items.iter().filter_map(recorded).collect())
}

/// Sets the capacity of a Node whose kubelet has not reported one yet; true if it had none.
///
/// A kubelet admits pods by the Node of the API where it exists. One that an operator wrote has no capacity, and
/// the kubelet does not retry a static pod that it rejected for lack of resources.
///
/// # Errors
/// When the Node does not exist, or the API does not answer or refuses.
pub async fn set_capacity(client: &Client, name: &HostName, capacity: Capacity) -> Result<bool, ApiError> {
    let api: Api<Node> = Api::all(client.clone());
    let node = api.get(name.as_str()).await.map_err(|error| ApiError::new("get", object(name), error))?;
    if node.status.and_then(|status| status.capacity).is_some_and(|known| !known.is_empty()) {
        return Ok(false);
    }
    let resources = json!({
        "cpu": capacity.cpus.to_string(),
        "memory": capacity.memory.to_string(),
        "ephemeral-storage": capacity.storage.to_string(),
        "pods": capacity.pods.to_string(),
    });
    let patch = Patch::Merge(json!({ "status": { "capacity": resources, "allocatable": resources } }));
    let patched = api.patch_status(name.as_str(), &PatchParams::default(), &patch).await;
    patched.map_err(|error| ApiError::new("patch", format!("{}/status", object(name)), error))?;
    Ok(true)
}

/// Sets the addresses of a Node's status; true if they differed.
///
/// # Errors
/// When the Node does not exist, or the API does not answer or refuses.
pub async fn set_addresses(
    client: &Client,
    name: &HostName,
    addresses: &[NodeAddress],
) -> Result<bool, ApiError> {
    let api: Api<Node> = Api::all(client.clone());
    let node = api.get(name.as_str()).await.map_err(|error| ApiError::new("get", object(name), error))?;
    if addresses_of(&node) == addresses {
        return Ok(false);
    }
    // A merge patch (RFC 7386) replaces the list, and so keeps its order.
    let patch = Patch::Merge(json!({ "status": { "addresses": addresses } }));
    let patched = api.patch_status(name.as_str(), &PatchParams::default(), &patch).await;
    patched.map_err(|error| ApiError::new("patch", format!("{}/status", object(name)), error))?;
    Ok(true)
}

/// The addresses of a Node's status, in order.
pub fn addresses_of(node: &Node) -> &[NodeAddress] {
    node.status.as_ref().and_then(|status| status.addresses.as_deref()).unwrap_or_default()
}

/// The condition Ready of a Node; `None` where its kubelet has never reported.
pub fn ready_condition(node: &Node) -> Option<&NodeCondition> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == "Ready")
}

/// Whether the condition Ready is True.
pub fn is_ready(node: &Node) -> bool {
    ready_condition(node).is_some_and(|ready| ready.status == "True")
}

/// Whether a Node has a taint with this key.
pub fn is_tainted(node: &Node, key: &str) -> bool {
    taints(node).iter().any(|taint| taint.key == key)
}

/// Removes every taint with this key; true if there was one. A Node that changes meanwhile is read again.
///
/// # Errors
/// [`ApiError::NotFound`] when the Node does not exist, [`ApiError::Conflict`] after several conflicts.
pub async fn remove_taint(client: &Client, name: &HostName, key: &str) -> Result<bool, ApiError> {
    change(client, name, |node| without_taint(node, key)).await
}

/// Lets pods be placed on a Node, or no longer, and sets annotations with it; true if anything differed.
///
/// # Errors
/// As [`annotate`].
pub async fn set_unschedulable(
    client: &Client,
    name: &HostName,
    unschedulable: bool,
    annotations: &Annotations,
) -> Result<bool, ApiError> {
    change(client, name, |node| {
        let is = node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or_default();
        let patch = patch(node, annotations);
        if is == unschedulable {
            return patch;
        }
        let version = &node.metadata.resource_version;
        let mut patch = patch.unwrap_or_else(|| json!({ "metadata": { "resourceVersion": version } }));
        patch["spec"] = json!({ "unschedulable": unschedulable.then_some(true) });
        Some(patch)
    })
    .await
}

/// Deletes a Node; false when there was none.
///
/// # Errors
/// When the API does not answer or refuses.
pub async fn delete(client: &Client, name: &HostName) -> Result<bool, ApiError> {
    let api: Api<Node> = Api::all(client.clone());
    let deleted = api.delete(name.as_str(), &DeleteParams::default()).await;
    match deleted.map_err(|error| ApiError::new("delete", object(name), error)) {
        Ok(_) => Ok(true),
        Err(ApiError::NotFound { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

fn taints(node: &Node) -> &[Taint] {
    node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default()
}

/// The merge patch that removes the taints with this key; `None` when there is none. It applies to the version of the
/// Node that it was made from only.
fn without_taint(node: &Node, key: &str) -> Option<Value> {
    let others: Vec<&Taint> = taints(node).iter().filter(|taint| taint.key != key).collect();
    let version = &node.metadata.resource_version;
    is_tainted(node, key)
        .then(|| json!({ "metadata": { "resourceVersion": version }, "spec": { "taints": others } }))
}

/// Sets annotations of a Node; true if any differed. A Node that changes meanwhile is read again.
///
/// # Errors
/// [`ApiError::NotFound`] when the Node does not exist, [`ApiError::Conflict`] after several conflicts.
pub async fn annotate(client: &Client, name: &HostName, annotations: &Annotations) -> Result<bool, ApiError> {
    change(client, name, |node| patch(node, annotations)).await
}

/// Gives a Node that its kubelet created the labels, annotations and taints of a manifest; false where it is another
/// one. Its own taints stay.
///
/// # Errors
/// As [`annotate`].
pub async fn complete(client: &Client, name: &HostName, manifest: &Node) -> Result<bool, ApiError> {
    change(client, name, |node| is_bare(node.annotations()).then(|| completed(node, manifest))).await
}

/// The merge patch for that. It applies to the version of the Node that it was made from only.
fn completed(node: &Node, manifest: &Node) -> Value {
    let given = taints(manifest);
    let is_given = |taint: &Taint| given.iter().any(|one| one.key == taint.key && one.effect == taint.effect);
    let all: Vec<&Taint> = taints(node).iter().filter(|taint| !is_given(taint)).chain(given).collect();
    json!({
        "metadata": {
            "resourceVersion": node.metadata.resource_version,
            "labels": manifest.metadata.labels,
            "annotations": manifest.metadata.annotations,
        },
        "spec": { "taints": all },
    })
}

/// Applies the patch that `patch` makes of the Node, until it does not conflict; false when there is none.
async fn change(
    client: &Client,
    name: &HostName,
    patch: impl Fn(&Node) -> Option<Value> + Send,
) -> Result<bool, ApiError> {
    let api: Api<Node> = Api::all(client.clone());
    let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let mut tries = 0;
    loop {
        tries += 1;
        let node = api.get(name.as_str()).await.map_err(|error| ApiError::new("get", object(name), error))?;
        let Some(patch) = patch(&node) else { return Ok(false) };
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

/// The merge patch (RFC 7386) that sets these annotations; `None` when none differs. It applies to the version of
/// the Node that it was made from only.
pub fn patch(node: &Node, annotations: &Annotations) -> Option<Value> {
    let present = node.annotations();
    let differing: Map<String, Value> = annotations
        .iter()
        .filter(|(key, value)| present.get(*key) != value.as_ref())
        .map(|(key, value)| (key.clone(), value.clone().map_or(Value::Null, Value::String)))
        .collect();
    let version = &node.metadata.resource_version;
    (!differing.is_empty())
        .then(|| json!({ "metadata": { "resourceVersion": version, "annotations": differing } }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> Node {
        serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": "n1", "resourceVersion": "7",
                "annotations": { "metalform.dev/ssh-host": "192.0.2.11", "old": "1", "kept": "yes" },
            },
        }))
        .unwrap()
    }

    fn annotations(pairs: &[(&str, Option<&str>)]) -> Annotations {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), value.map(str::to_owned))).collect()
    }

    #[test]
    fn a_node_with_these_annotations_is_left_alone() {
        let same = annotations(&[("metalform.dev/ssh-host", Some("192.0.2.11")), ("absent", None)]);
        assert_eq!(patch(&node(), &same), None);
    }

    #[test]
    fn a_taint_is_removed_and_the_others_stay() {
        let mut node = node();
        assert_eq!(without_taint(&node, "a"), None);
        node.spec = serde_json::from_value(json!({
            "taints": [{ "key": "a", "effect": "NoSchedule" }, { "key": "b", "effect": "NoExecute" }],
        }))
        .unwrap();
        let others = json!([{ "key": "b", "effect": "NoExecute" }]);
        assert_eq!(
            without_taint(&node, "a"),
            Some(json!({ "metadata": { "resourceVersion": "7" }, "spec": { "taints": others } }))
        );
    }

    #[test]
    fn a_node_that_its_kubelet_created_gets_what_a_manifest_has_and_keeps_its_taints() {
        let taint = |key: &str, value: &str| json!({ "key": key, "value": value, "effect": "NoSchedule" });
        let bare: Node = serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n1", "resourceVersion": "9" },
            "spec": { "taints": [taint("a", "of-kubelet"), taint("b", "old")] },
        }))
        .unwrap();
        let mut manifest = node();
        manifest.metadata.labels = Some(BTreeMap::from([("role".to_owned(), String::new())]));
        manifest.spec = serde_json::from_value(json!({ "taints": [taint("b", "new")] })).unwrap();
        let annotations = json!({ "metalform.dev/ssh-host": "192.0.2.11", "old": "1", "kept": "yes" });
        let metadata =
            json!({ "resourceVersion": "9", "labels": { "role": "" }, "annotations": annotations });
        let taints = [taint("a", "of-kubelet"), taint("b", "new")];
        assert_eq!(
            completed(&bare, &manifest),
            json!({ "metadata": metadata, "spec": { "taints": taints } })
        );
    }

    #[test]
    fn a_patch_contains_only_what_differs() {
        let changed =
            annotations(&[("old", None), ("metalform.dev/ssh-host", Some("192.0.2.11")), ("new", Some("1"))]);
        assert_eq!(
            patch(&node(), &changed),
            Some(
                json!({ "metadata": { "resourceVersion": "7", "annotations": { "old": null, "new": "1" } } })
            )
        );
    }
}
