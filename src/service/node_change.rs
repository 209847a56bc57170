//! What has changed of a Node between the moment that it was read and the turn of its operation, which may have waited for
//! another operation or behind other nodes.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use tokio::time::{Instant, timeout};

use super::foreseen_node::ManifestPart;
use crate::kube_api::client::{self, ApiError};
use crate::kube_api::nodes;
use crate::model::node::NodeSpec;
use crate::workspace::layout::Layout;

/// What was read a moment ago is not read again. Shorter than the shortest wait for another operation.
const FRESH: Duration = Duration::from_millis(400);
/// How long the API may take; it is not waited for.
const DEADLINE: Duration = Duration::from_secs(5);

/// A Node as its operation knows it.
pub(super) struct ReadNode {
    pub spec: NodeSpec,
    /// When it was read; `None` for long ago.
    pub at: Option<Instant>,
    /// Whether it may be deleted meanwhile.
    pub may_be_deleted: bool,
}

impl ReadNode {
    /// What has changed of it. Of an API that does not answer nothing is known: the run reports that itself.
    pub(super) async fn change(&self, layout: &Layout) -> Option<String> {
        if self.at.is_some_and(|at| at.elapsed() < FRESH) {
            return None;
        }
        let now = timeout(DEADLINE, self.read(layout)).await.ok()?.ok()?;
        self.difference(now.as_ref())
    }

    async fn read(&self, layout: &Layout) -> Result<Option<Node>, ApiError> {
        nodes::get(&client::connect_without_retry(&layout.admin_conf()).await?, &self.spec.name).await
    }

    fn difference(&self, now: Option<&Node>) -> Option<String> {
        let Some(now) = now else { return (!self.may_be_deleted).then(|| "it is deleted".to_owned()) };
        let parts: Vec<String> = match NodeSpec::from_node(now) {
            Ok(now) => differing(&self.spec, &now).iter().map(ToString::to_string).collect(),
            Err(wrong) => wrong.problems.iter().map(ToString::to_string).collect(),
        };
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// Recorded addresses are left out, which operations write, and taints, which other controllers set as well.
fn differing(before: &NodeSpec, now: &NodeSpec) -> Vec<ManifestPart> {
    let parts = [
        (ManifestPart::Roles, before.roles != now.roles),
        (ManifestPart::Version, before.version != now.version),
        (ManifestPart::Ssh, before.ssh != now.ssh),
    ];
    parts.into_iter().filter_map(|(part, differs)| differs.then_some(part)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(labels: Value, annotations: Value, taints: Value) -> Node {
        let metadata = json!({ "name": "node-1", "labels": labels, "annotations": annotations });
        serde_json::from_value(json!({ "metadata": metadata, "spec": { "taints": taints } })).unwrap()
    }

    #[test]
    fn what_an_operator_has_changed_meanwhile_is_named() {
        let ssh = || json!({ "metalform.dev/ssh-host": "192.0.2.1" });
        let taint = |key: &str| json!({ "key": key, "effect": "NoSchedule" });
        let before =
            node(json!({ "node-role.kubernetes.io/etcd": "" }), ssh(), json!([taint("a"), taint("b")]));
        let table = [
            (json!({ "node-role.kubernetes.io/etcd": "" }), ssh(), json!([taint("b"), taint("a")]), None),
            // What operations and Kubernetes write.
            (
                json!({ "node-role.kubernetes.io/etcd": "", "kubernetes.io/os": "linux" }),
                json!({ "metalform.dev/ssh-host": "192.0.2.1", "metalform.dev/control-plane-ip": "192.0.2.1" }),
                json!([taint("a"), taint("b"), taint("node.kubernetes.io/not-ready")]),
                None,
            ),
            (json!({}), ssh(), json!([taint("a")]), Some("roles")),
            (
                json!({ "node-role.kubernetes.io/etcd": "", "metalform.dev/version": "1.34.0" }),
                json!({ "metalform.dev/ssh-host": "192.0.2.2" }),
                json!([taint("a"), taint("b")]),
                Some("version, SSH settings"),
            ),
            (
                json!({ "node-role.kubernetes.io/etcd": "" }),
                json!({}),
                json!([taint("a"), taint("b")]),
                Some("annotation metalform.dev/ssh-host is missing"),
            ),
        ];
        let read = |may_be_deleted| ReadNode {
            spec: NodeSpec::from_node(&before).unwrap(),
            at: None,
            may_be_deleted,
        };
        for (labels, annotations, taints, expected) in table {
            let now = node(labels, annotations, taints);
            assert_eq!(read(false).difference(Some(&now)).as_deref(), expected);
        }
        assert_eq!(read(false).difference(None).as_deref(), Some("it is deleted"));
        assert_eq!(read(true).difference(None), None);
    }

    #[tokio::test]
    async fn where_there_is_no_api_nothing_is_known_to_have_changed() {
        let before = node(json!({}), json!({ "metalform.dev/ssh-host": "192.0.2.1" }), json!([]));
        let spec = NodeSpec::from_node(&before).unwrap();
        let root = tempfile::tempdir().unwrap();
        let read = ReadNode { spec, at: None, may_be_deleted: false };
        assert_eq!(read.change(&Layout::below(root.path())).await, None);
    }
}
