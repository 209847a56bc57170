//! What templates and state files see: the four roots `cluster`, `node`, `facts`, `peers`.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Serialize;

use super::goal::{address_in, client_url, interface_of};
use super::inputs::NodeInputs;
use super::layer::Layer;
use crate::model::cluster::Cluster;
use crate::model::facts::Facts;
use crate::model::node::Taint;
use crate::model::role::Role;
use crate::state::Shapes;

/// All four.
#[derive(Debug, Serialize)]
pub struct Values<'a> {
    /// The same for every node.
    pub cluster: &'a Cluster,
    /// This node.
    pub node: NodeValues,
    /// What its host is.
    pub facts: &'a Facts,
    /// The others.
    pub peers: Peers,
}

/// The `node` of templates and state files.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NodeValues {
    /// Its name.
    pub name: String,
    /// Its roles, by name.
    pub roles: Vec<&'static str>,
    /// Its address on the control plane, and the interface that has it.
    pub control_plane_ip: IpAddr,
    /// See above.
    pub control_plane_interface: String,
    /// Its address on the workload plane, and the interface that has it.
    pub workload_plane_ip: IpAddr,
    /// See above.
    pub workload_plane_interface: String,
    /// The part of the pods' network that is its own; empty before it is given one.
    pub pod_cidr: String,
    /// With which the kubelet asks for its first certificate; none when it has one.
    pub join_token: Option<String>,
    /// Taints that it registers with.
    pub taints: Vec<Taint>,
    /// What concerns its etcd member, or its API server's way to etcd.
    pub etcd: EtcdValues,
}

/// `node.etcd`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EtcdValues {
    /// For the member's first start.
    pub initial_cluster: String,
    /// `new` or `existing`.
    pub initial_cluster_state: String,
    /// Where the API server finds etcd: its own host's member where there is one, so that either both work or
    /// the proxies go to another.
    pub endpoints: Vec<String>,
}

/// The `peers` of templates and state files.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Peers {
    /// Nodes with an API server that was proved, by name.
    pub masters: Vec<Master>,
}

/// One of them.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Master {
    /// Its name.
    pub name: String,
    /// Its address.
    pub control_plane_ip: IpAddr,
}

/// What is the same for every layer of a node, and may be secret.
#[derive(Debug, Clone, Copy)]
pub struct ClusterInputs<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// The node's taints.
    pub taints: &'a [Taint],
    /// The token that this run creates for the kubelet.
    pub join_token: &'a str,
}

/// Which fields the roots have in a cluster.
pub fn shapes() -> Shapes {
    Shapes::of_any_host().with::<Cluster>("cluster").with::<NodeValues>("node").with::<Peers>("peers")
}

/// The values for one layer. Pure.
pub fn values<'a>(inputs: &'a NodeInputs, layer: &Layer, given: ClusterInputs<'a>) -> Values<'a> {
    let NodeInputs { goal, facts, address, .. } = inputs;
    let control_plane_interface = interface_of(facts, *address).unwrap_or_default();
    let (workload_plane_interface, workload_plane_ip) =
        address_in(facts, &goal.networks.workload_plane.cidrs).unwrap_or((String::new(), *address));
    let flags = layer.member_flags().unwrap_or_default();
    Values {
        cluster: given.cluster,
        node: NodeValues {
            name: goal.name.to_string(),
            roles: goal.roles.iter().map(|role| role.as_str()).collect(),
            control_plane_ip: *address,
            control_plane_interface,
            workload_plane_ip,
            workload_plane_interface,
            pod_cidr: inputs.pod_cidr().unwrap_or_default(),
            join_token: (!inputs.joined).then(|| given.join_token.to_owned()),
            taints: given.taints.to_vec(),
            etcd: EtcdValues {
                initial_cluster: flags.0.to_owned(),
                initial_cluster_state: flags.1.to_owned(),
                endpoints: etcd_endpoints(inputs),
            },
        },
        facts,
        peers: Peers { masters: masters(inputs) },
    }
}

fn etcd_endpoints(inputs: &NodeInputs) -> Vec<String> {
    if inputs.goal.has(Role::Etcd) {
        return vec![client_url(inputs.address)];
    }
    let members = inputs.membership.iter().flat_map(|membership| membership.voters());
    members.flat_map(|member| member.client_urls.iter().cloned()).collect()
}

/// By name. The first node of a cluster is its only one until the API lists others.
fn masters(inputs: &NodeInputs) -> Vec<Master> {
    let mut masters: Vec<Master> = inputs
        .peers
        .iter()
        .filter(|(_, peer)| peer.api_server)
        .filter_map(|(name, peer)| {
            Some(Master { name: name.clone(), control_plane_ip: peer.control_plane_ip? })
        })
        .collect();
    if inputs.goal.has(Role::Master) && inputs.serves_the_api() {
        masters.push(Master { name: inputs.goal.name.to_string(), control_plane_ip: inputs.address });
    }
    masters.sort_by(|one, other| one.name.cmp(&other.name));
    masters
}
