//! What is written into the Node of a Machine, in the version that was observed.

use k8s_openapi::api::core::v1::{Node, Taint as NodeTaint};
use serde_json::{Map, Value, json};

use super::api::provider_id::ProviderId;
use super::lifecycle::NodeSettingsChange;
use super::node_observation::{provider_id, taints};
use super::object_write::ObjectWrite;
use crate::model::node::Taint;

/// Changes labels, annotations and taints.
pub(super) fn change(node: &Node, change: &NodeSettingsChange) -> ObjectWrite<Node> {
    let mut metadata = Map::new();
    for (key, changes) in [("labels", &change.labels), ("annotations", &change.annotations)] {
        if !changes.is_empty() {
            metadata.insert(key.to_owned(), json!(changes));
        }
    }
    let taints = change.taints.as_ref().map(|new| {
        let new: Vec<Value> = new.iter().map(|taint| as_present(node, taint)).collect();
        ("spec".to_owned(), json!({ "taints": new }))
    });
    ObjectWrite::patch(node, metadata, taints.into_iter().collect())
}

/// A taint that the Node has keeps the time at which it was added: pods are evicted by it.
fn as_present(node: &Node, taint: &Taint) -> Value {
    let is_same = |present: &&NodeTaint| {
        let value = present.value.as_deref().unwrap_or_default();
        (present.key.as_str(), value, present.effect.as_str())
            == (taint.key.as_str(), taint.value.as_str(), taint.effect.as_str())
    };
    taints(node).iter().find(is_same).map_or_else(|| json!(taint), |present| json!(present))
}

/// Makes the Node unschedulable.
pub(super) fn cordon(node: &Node) -> ObjectWrite<Node> {
    let spec = ("spec".to_owned(), json!({ "unschedulable": true }));
    ObjectWrite::patch(node, Map::new(), Map::from_iter([spec]))
}

/// Deletes the Node with this provider ID, whatever has changed of it; `None` if it has another one.
pub(super) fn delete(node: &Node, id: &ProviderId) -> Option<ObjectWrite<Node>> {
    let is_own = provider_id(node) == Some(&id.to_string());
    let uid = node.metadata.uid.clone().filter(|_| is_own)?;
    Some(ObjectWrite::Delete { name: node.metadata.name.clone()?, uid: Some(uid), version: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> Node {
        serde_json::from_value(json!({
            "metadata": { "name": "h1", "uid": "n-1", "resourceVersion": "7" },
            "spec": {
                "providerID": "metalform://h1/u-1",
                "taints": [{ "key": "a", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z" }],
            },
        }))
        .unwrap()
    }

    fn patch(write: ObjectWrite<Node>) -> Value {
        let ObjectWrite::Patch { name, mut patch } = write else { panic!("{write:?}") };
        assert_eq!((name.as_str(), patch["metadata"]["uid"].take()), ("h1", json!("n-1")));
        assert_eq!(patch["metadata"]["resourceVersion"].take(), json!("7"));
        patch["metadata"].as_object_mut().unwrap().retain(|_, value| !value.is_null());
        patch
    }

    #[test]
    fn a_change_contains_what_changes() {
        let labels = [("a".to_owned(), Some("1".to_owned())), ("b".to_owned(), None)].into();
        let only_labels = NodeSettingsChange { labels, ..NodeSettingsChange::default() };
        let expected = json!({ "metadata": { "labels": { "a": "1", "b": null } } });
        assert_eq!(patch(change(&node(), &only_labels)), expected);
        let taint = |key: &str, effect: &str| Taint {
            key: key.to_owned(),
            value: String::new(),
            effect: effect.to_owned(),
        };
        let taints = Some(vec![taint("a", "NoExecute"), taint("b", "NoSchedule")]);
        let expected = json!({ "metadata": {}, "spec": { "taints": [
            { "key": "a", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z" },
            { "key": "b", "value": "", "effect": "NoSchedule" },
        ] } });
        let only_taints = NodeSettingsChange { taints, ..NodeSettingsChange::default() };
        assert_eq!(patch(change(&node(), &only_taints)), expected);
        assert_eq!(patch(cordon(&node())), json!({ "metadata": {}, "spec": { "unschedulable": true } }));
    }

    #[test]
    fn a_node_is_deleted_by_its_uid_if_it_is_that_of_the_claim() {
        let id = |uid: &str| ProviderId { host: "h1".parse().unwrap(), machine_uid: uid.to_owned() };
        let expected =
            ObjectWrite::Delete { name: "h1".to_owned(), uid: Some("n-1".to_owned()), version: None };
        assert_eq!(delete(&node(), &id("u-1")), Some(expected));
        assert_eq!(delete(&node(), &id("u-2")), None);
    }
}
