//! The pods of one node.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};

use super::client::ApiError;
use crate::model::api_contract::CONFIG_DIGEST;
use crate::model::name::HostName;

/// A pod that must run on a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExpectedPod {
    /// A static pod, by the name in its manifest: `etcd`, of which `etcd-NODE` is the mirror.
    Static(String),
    /// A pod of this DaemonSet.
    DaemonSet(String),
}

/// All pods that are bound to a node, of every namespace.
///
/// # Errors
/// When the API does not answer or refuses.
pub async fn of_node(client: &Client, node: &HostName) -> Result<Vec<Pod>, ApiError> {
    let api: Api<Pod> = Api::all(client.clone());
    let here = ListParams::default().fields(&format!("spec.nodeName={node}"));
    let listed = api
        .list(&here)
        .await
        .map_err(|error| ApiError::new("list", format!("pods of node/{node}"), error))?;
    Ok(listed.items)
}

/// One line for each expected pod that is not Ready, or is a static pod of another manifest than the host has.
/// Empty when all are. `digests` are those in the host's manifests, by the name of the static pod.
pub fn missing(
    pods: &[Pod],
    node: &HostName,
    expected: &[ExpectedPod],
    digests: &BTreeMap<String, String>,
) -> Vec<String> {
    expected.iter().filter_map(|expected| problem(pods, node, expected, digests)).collect()
}

/// The digest in a manifest or in a pod; `None` where it has none.
pub fn config_digest(pod: &Pod) -> Option<&String> {
    pod.annotations().get(CONFIG_DIGEST)
}

fn problem(
    pods: &[Pod],
    node: &HostName,
    expected: &ExpectedPod,
    digests: &BTreeMap<String, String>,
) -> Option<String> {
    let (title, found): (String, Option<&Pod>) = match expected {
        ExpectedPod::Static(name) => {
            let mirror = format!("{name}-{node}");
            let found = pods.iter().find(|pod| pod.name_any() == mirror);
            (format!("pod {mirror}"), found)
        }
        ExpectedPod::DaemonSet(name) => {
            let owned = |pod: &&Pod| {
                pod.owner_references().iter().any(|owner| owner.kind == "DaemonSet" && owner.name == *name)
            };
            // While a DaemonSet is updated an old pod may exist beside the new one.
            let found = pods.iter().filter(owned).max_by_key(|pod| pod.metadata.deletion_timestamp.is_none());
            (format!("pod of DaemonSet {name}"), found)
        }
    };
    let Some(pod) = found else { return Some(format!("{title}: not found")) };
    if pod.metadata.deletion_timestamp.is_some() {
        return Some(format!("{title}: terminating"));
    }
    // The kubelet restarts the pod some time after its manifest was replaced; until then the old one is Ready.
    if let ExpectedPod::Static(name) = expected
        && let Some(digest) = digests.get(name)
        && config_digest(pod) != Some(digest)
    {
        return Some(format!("{title}: not restarted yet with its new configuration"));
    }
    if is_ready(pod) { None } else { Some(format!("{title}: {}", not_ready_reason(pod))) }
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Why its containers wait or failed; its phase where they have no reason.
fn not_ready_reason(pod: &Pod) -> String {
    let Some(status) = &pod.status else { return "not started".to_owned() };
    let containers = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    let reasons: Vec<String> = containers
        .filter_map(|container| {
            let state = container.state.as_ref()?;
            let waiting = state.waiting.as_ref().and_then(|waiting| waiting.reason.clone());
            let failed = state.terminated.as_ref().filter(|ended| ended.exit_code != 0);
            let reason =
                waiting.or_else(|| failed.map(|ended| format!("exit status {}", ended.exit_code)))?;
            Some(format!("container {} {reason}", container.name))
        })
        .collect();
    if reasons.is_empty() {
        format!("{}, not Ready", status.phase.as_deref().unwrap_or("Unknown"))
    } else {
        reasons.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(name: &str, owner: Option<&str>, status: serde_json::Value) -> Pod {
        let owners: Vec<_> = owner
            .iter()
            .map(|owner| json!({ "kind": "DaemonSet", "name": owner, "apiVersion": "apps/v1", "uid": "1" }))
            .collect();
        serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": name, "ownerReferences": owners },
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn each_expected_pod_that_is_not_ready_is_a_line() {
        let ready = json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] });
        let pulling = json!({ "phase": "Pending", "containerStatuses": [
            { "name": "proxy", "image": "", "imageID": "", "ready": false, "restartCount": 0,
              "state": { "waiting": { "reason": "ImagePullBackOff" } } },
        ]});
        let crashed = json!({ "phase": "Pending", "initContainerStatuses": [
            { "name": "init", "image": "", "imageID": "", "ready": false, "restartCount": 0,
              "state": { "terminated": { "exitCode": 3 } } },
        ]});
        let mut terminating = pod("bird-1", Some("bird"), ready.clone());
        terminating.metadata.deletion_timestamp = Some(jiff::Timestamp::UNIX_EPOCH.into());
        let mut leaving = pod("dns-1", Some("dns"), ready.clone());
        leaving.metadata.deletion_timestamp = Some(jiff::Timestamp::UNIX_EPOCH.into());
        let pods = [
            pod("etcd-n1", None, ready.clone()),
            pod("kube-apiserver-n1", None, json!({ "phase": "Running" })),
            pod("kube-proxy-x", Some("kube-proxy"), pulling),
            pod("cni-x", Some("cni"), crashed),
            terminating,
            pod("bird-2", Some("bird"), ready),
            leaving,
        ];
        let expected = [
            ExpectedPod::Static("etcd".to_owned()),
            ExpectedPod::Static("kube-apiserver".to_owned()),
            ExpectedPod::Static("kube-scheduler".to_owned()),
            ExpectedPod::DaemonSet("kube-proxy".to_owned()),
            ExpectedPod::DaemonSet("cni".to_owned()),
            ExpectedPod::DaemonSet("bird".to_owned()),
            ExpectedPod::DaemonSet("dns".to_owned()),
        ];
        assert_eq!(
            missing(&pods, &"n1".parse().unwrap(), &expected, &BTreeMap::new()),
            [
                "pod kube-apiserver-n1: Running, not Ready",
                "pod kube-scheduler-n1: not found",
                "pod of DaemonSet kube-proxy: container proxy ImagePullBackOff",
                "pod of DaemonSet cni: container init exit status 3",
                "pod of DaemonSet dns: terminating",
            ]
        );
    }

    #[test]
    fn a_ready_static_pod_of_an_older_manifest_is_waited_for() {
        let ready = json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] });
        let mut old = pod("kube-apiserver-n1", None, ready);
        let expected = [ExpectedPod::Static("kube-apiserver".to_owned())];
        let on_disk = BTreeMap::from([("kube-apiserver".to_owned(), "sha256:new".to_owned())]);
        let missing =
            |pod: &Pod| missing(std::slice::from_ref(pod), &"n1".parse().unwrap(), &expected, &on_disk);
        let waited = ["pod kube-apiserver-n1: not restarted yet with its new configuration"];
        assert_eq!(missing(&old), waited, "of a release without digests");
        old.annotations_mut().insert(CONFIG_DIGEST.to_owned(), "sha256:old".to_owned());
        assert_eq!(missing(&old), waited);
        old.annotations_mut().insert(CONFIG_DIGEST.to_owned(), "sha256:new".to_owned());
        assert!(missing(&old).is_empty());
    }
}
