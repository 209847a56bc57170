//! `node list`: the Nodes of the cluster.

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use serde::Serialize;

use super::cluster_nodes::{self, ClusterNodesError};
use crate::kube_api::nodes::ready_condition;
use crate::model::api_contract::{CONTROL_PLANE_IP, WORKLOAD_PLANE_IP};
use crate::model::node::role_name;
use crate::workspace::layout::Layout;

/// One Node; what the API does not have is absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedNode {
    /// Name.
    pub name: String,
    /// The condition Ready.
    pub status: ReadyStatus,
    /// From its labels.
    pub roles: Vec<String>,
    /// Of the kubelet.
    pub version: Option<String>,
    /// Address on the control plane.
    pub control_plane: Option<String>,
    /// Address on the workload plane.
    pub workload_plane: Option<String>,
    /// Name of the operating system.
    pub os: Option<String>,
}

/// The condition Ready of a Node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum ReadyStatus {
    /// `True`.
    Ready,
    /// `False`.
    NotReady,
    /// Anything else: the kubelet has not reported for some time.
    Unknown,
}

impl ReadyStatus {
    /// The word that kubectl uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::NotReady => "NotReady",
            Self::Unknown => "Unknown",
        }
    }
}

/// Lists all Nodes.
///
/// # Errors
/// When the API cannot be used.
pub async fn list(layout: &Layout) -> Result<Vec<ListedNode>, ClusterNodesError> {
    Ok(cluster_nodes::list(layout).await?.iter().map(listed).collect())
}

fn listed(node: &Node) -> ListedNode {
    let status = node.status.as_ref();
    let info = status.and_then(|status| status.node_info.as_ref());
    let ready = ready_condition(node);
    let annotation = |key: &str| node.annotations().get(key).cloned();
    ListedNode {
        name: node.name_any(),
        status: match ready.map(|ready| ready.status.as_str()) {
            Some("True") => ReadyStatus::Ready,
            Some("False") => ReadyStatus::NotReady,
            _ => ReadyStatus::Unknown,
        },
        roles: node.labels().keys().filter_map(|label| role_name(label)).map(str::to_owned).collect(),
        version: info.map(|info| info.kubelet_version.clone()),
        control_plane: annotation(CONTROL_PLANE_IP),
        workload_plane: annotation(WORKLOAD_PLANE_IP),
        os: info.map(|info| info.os_image.clone()),
    }
}
