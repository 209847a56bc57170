//! The contract of values: the four roots `cluster`, `node`, `facts` and `peers` that templates and state files read.
//!
//! They have one shape, whether hosts come from a roster or from a cluster's Nodes. A cluster sets every field. On a
//! roster, `cluster` is the `vars` of `defaults`, a host's `vars` are fields of `node`, and fields that neither the
//! roster nor the host provides are undefined: reading one is an error that names it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;

use super::facts::Facts;
use super::node::Taint;
use super::role::Role;

/// The four roots. `C` is [`super::cluster::Cluster`] or a map in its shape.
#[derive(Debug, Serialize)]
pub struct Values<'a, C> {
    /// The same for every host.
    pub cluster: &'a C,
    /// The host that is rendered for.
    pub node: ThisNode,
    /// Absent until the host was observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<&'a Facts>,
    /// The other nodes by name.
    pub peers: BTreeMap<String, NodeValues>,
}

/// A node, as others see it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NodeValues {
    /// The host name.
    pub name: String,
    /// Without duplicates; never empty.
    pub roles: BTreeSet<Role>,
    /// Labels of the Node, or of the host in a roster.
    pub labels: BTreeMap<String, String>,
    /// Taints of the Node.
    pub taints: Vec<Taint>,
    /// The address or name that SSH connects to.
    pub address: String,
    /// The address on the control plane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_ip: Option<IpAddr>,
    /// The address on the workload plane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload_plane_ip: Option<IpAddr>,
    /// Whether proxies may use the node's API server. In a cluster: it was ready once. On a roster: the host is a
    /// master.
    pub api_server: bool,
    /// `vars` of a roster; never a name of another field.
    #[serde(flatten)]
    #[schemars(skip)]
    pub vars: BTreeMap<String, Json>,
}

/// The node that is rendered for: [`NodeValues`], and what only its own configuration needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ThisNode {
    /// Its fields are fields of `node`.
    #[serde(flatten)]
    pub node: NodeValues,
    /// Addresses at which packages and images are served: the bootstrap node's first, then those of the mirrors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mirrors: Option<Vec<IpAddr>>,
    /// The interface with `control_plane_ip`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_interface: Option<String>,
    /// The interface with `workload_plane_ip`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload_plane_interface: Option<String>,
    /// The node's part of the pod network; empty until it is allocated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_cidr: Option<String>,
    /// The provider ID of the Node of a Machine; null for every other node, and on a roster.
    pub provider_id: Option<String>,
    /// Token for the kubelet's first certificate; null once it has one, and on a roster.
    pub join_token: Option<String>,
    /// etcd, as the node's member and API server need it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etcd: Option<EtcdValues>,
}

/// `node.etcd`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EtcdValues {
    /// `--initial-cluster` of the member's first start.
    pub initial_cluster: String,
    /// Whether the member may start without data: its data directory is created.
    pub first_start: bool,
    /// Client URLs for the node's API server: of the member on the same host where there is one, so that both fail
    /// together and proxies use another API server.
    pub endpoints: Vec<String>,
}

/// Fields of `node` that every host of a roster has, and that `vars` cannot set.
pub const OWN_VALUES: [&str; 8] =
    ["name", "roles", "labels", "taints", "address", "api_server", "provider_id", "join_token"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vars_are_fields_of_the_node_and_absent_fields_are_undefined() {
        let node = NodeValues {
            name: "a".to_owned(),
            roles: BTreeSet::from([Role::Etcd]),
            vars: BTreeMap::from([("pod_cidr".to_owned(), Json::from("10.233.0.0/24"))]),
            ..NodeValues::default()
        };
        let seen = serde_json::to_value(ThisNode { node, ..ThisNode::default() }).unwrap();
        assert_eq!(seen["pod_cidr"], "10.233.0.0/24");
        assert_eq!(seen["roles"], serde_json::json!(["etcd"]));
        assert_eq!(seen.get("control_plane_ip"), None);
        assert_eq!(seen.get("join_token"), Some(&Json::Null));
        for own in OWN_VALUES {
            assert!(seen.get(own).is_some(), "{own}");
        }
    }
}
