//! From Nodes of the API to what the planners know of them.

use k8s_openapi::api::core::v1::{Node, NodeCondition};
use kube::ResourceExt;

use super::health::NodeStatusCondition;
use super::lifecycle::MachineNode;
use crate::model::node::Taint;

/// Effects that keep pods off a node.
const REPELLING: [&str; 2] = ["NoSchedule", "NoExecute"];

/// What the planners know of a Node. The pod network runs where the kubelet is Ready, which requires its configuration,
/// unless a pod network that reports by the condition NetworkUnavailable reports that it does not.
pub(super) fn observe(node: &Node) -> MachineNode {
    let ready = condition(node, "Ready");
    let network = condition(node, "NetworkUnavailable");
    MachineNode {
        provider_id: provider_id(node).cloned(),
        labels: node.labels().clone(),
        annotations: node.annotations().clone(),
        taints: taints(node).iter().map(taint).collect(),
        unschedulable: is_unschedulable(node),
        ready: is_ready(node),
        message: ready.and_then(|ready| ready.message.clone()).unwrap_or_default(),
        pod_network: network.is_none_or(|network| network.status == "False"),
    }
}

/// `spec.providerID`; an empty one is none.
pub(super) fn provider_id(node: &Node) -> Option<&String> {
    node.spec.as_ref()?.provider_id.as_ref().filter(|id| !id.is_empty())
}

/// Whether the condition Ready is True.
pub(super) fn is_ready(node: &Node) -> bool {
    condition(node, "Ready").is_some_and(|ready| ready.status == "True")
}

/// Whether pods of another node can run on it, as far as is known without their tolerations.
pub fn accepts_pods(node: &Node) -> bool {
    let repels = taints(node).iter().any(|taint| REPELLING.contains(&taint.effect.as_str()));
    is_ready(node) && !is_unschedulable(node) && !repels && node.metadata.deletion_timestamp.is_none()
}

/// `spec.taints`.
pub(super) fn taints(node: &Node) -> &[k8s_openapi::api::core::v1::Taint] {
    node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default()
}

fn taint(taint: &k8s_openapi::api::core::v1::Taint) -> Taint {
    Taint {
        key: taint.key.clone(),
        value: taint.value.clone().unwrap_or_default(),
        effect: taint.effect.clone(),
    }
}

fn is_unschedulable(node: &Node) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or_default()
}

/// Its conditions; those without a transition time, which the API server requires of none, are left out.
pub(super) fn conditions(node: &Node) -> Vec<NodeStatusCondition> {
    let conditions = node.status.iter().filter_map(|status| status.conditions.as_ref()).flatten();
    let observed = conditions.filter_map(|condition| {
        Some(NodeStatusCondition {
            kind: condition.type_.clone(),
            status: condition.status.clone(),
            since: condition.last_transition_time.as_ref()?.0,
        })
    });
    observed.collect()
}

fn condition<'a>(node: &'a Node, kind: &str) -> Option<&'a NodeCondition> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// Removes what changes with each report of a kubelet, what is large, and the version: before a write, a Node is read from
/// the API server.
pub fn forget_unread(node: &mut Node) {
    node.metadata.resource_version = None;
    let Some(status) = &mut node.status else { return };
    status.images = None;
    for condition in status.conditions.iter_mut().flatten() {
        condition.last_heartbeat_time = None;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(spec: &str, conditions: &[(&str, &str)]) -> Node {
        let spec: serde_json::Value = serde_saphyr::from_str(spec).unwrap();
        let conditions: Vec<_> = conditions
            .iter()
            .map(|(kind, status)| json!({ "type": kind, "status": status, "message": "as reported" }))
            .collect();
        serde_json::from_value(
            json!({ "metadata": {}, "spec": spec, "status": { "conditions": conditions } }),
        )
        .unwrap()
    }

    #[test]
    fn a_node_is_what_its_conditions_report() {
        for (conditions, ready, network) in [
            (&[][..], false, true),
            (&[("Ready", "True")], true, true),
            (&[("Ready", "False")], false, true),
            (&[("Ready", "Unknown")], false, true),
            (&[("Ready", "True"), ("NetworkUnavailable", "False")], true, true),
            (&[("Ready", "True"), ("NetworkUnavailable", "True")], true, false),
            (&[("Ready", "True"), ("NetworkUnavailable", "Unknown")], true, false),
        ] {
            let found = observe(&node("{}", conditions));
            assert_eq!((found.ready, found.pod_network), (ready, network), "{conditions:?}");
        }
        let found = observe(&node(
            "{providerID: 'metalform://h1/u-1', unschedulable: true, taints: [{key: a, effect: NoSchedule}]}",
            &[("Ready", "False")],
        ));
        assert_eq!(found.provider_id.as_deref(), Some("metalform://h1/u-1"));
        assert_eq!((found.unschedulable, found.message.as_str()), (true, "as reported"));
        let expected = Taint { key: "a".to_owned(), value: String::new(), effect: "NoSchedule".to_owned() };
        assert_eq!(found.taints, [expected]);
        assert_eq!(observe(&node("{providerID: ''}", &[])).provider_id, None);
    }

    #[test]
    fn pods_go_where_nothing_repels_them() {
        for (spec, ready, expected) in [
            ("{}", "True", true),
            ("{}", "False", false),
            ("{unschedulable: true}", "True", false),
            ("{taints: [{key: a, effect: NoSchedule}]}", "True", false),
            ("{taints: [{key: a, effect: NoExecute}]}", "True", false),
            ("{taints: [{key: a, effect: PreferNoSchedule}]}", "True", true),
        ] {
            assert_eq!(accepts_pods(&node(spec, &[("Ready", ready)])), expected, "{spec} {ready}");
        }
    }
}
