//! The values of a cluster's node, in the contract of [`crate::model::values`].

use std::collections::BTreeMap;

use super::goal::Goal;
use super::layer::Layer;
use super::survey::Survey;
use super::world::{Peer, World};
use crate::model::api_contract::API_SERVER;
use crate::model::cluster::Cluster;
use crate::model::facts::Facts;
use crate::model::node::{NodeSpec, roles_of};
use crate::model::role::Role;
use crate::model::values::{EtcdValues, NodeValues, ThisNode, Values};
use crate::state::Shapes;

/// Inputs that are not part of the goal; some are secret.
#[derive(Debug, Clone, Copy)]
pub struct ClusterInputs<'a> {
    /// The root `cluster`.
    pub cluster: &'a Cluster,
    /// The node's manifest.
    pub spec: &'a NodeSpec,
    /// Made for this run.
    pub join_token: &'a str,
}

/// The fields of the roots in a cluster.
pub fn shapes() -> Shapes {
    Shapes::of_any_host()
        .with::<Cluster>("cluster")
        .with::<ThisNode>("node")
        .with::<BTreeMap<String, NodeValues>>("peers")
}

/// The values for one layer. Pure.
pub fn values<'a>(
    goal: &Goal,
    facts: &'a Facts,
    world: &World,
    layer: &Layer,
    inputs: ClusterInputs<'a>,
) -> Values<'a, Cluster> {
    let node = world.node.as_ref().and_then(Option::as_ref);
    let interface = |networks| facts.address_in(networks).map_or(String::new(), |(name, _)| name.to_owned());
    let workload_plane = &goal.networks.workload_plane.cidrs;
    let workload_plane_ip = facts.address_in(workload_plane).map_or(goal.control_plane_ip, |(_, ip)| ip);
    let (initial_cluster, initial_cluster_state) = layer.member_flags().unwrap_or_default();
    // The first node of a cluster has the only API server.
    let has_served = goal.first || node.is_some_and(|node| node.annotations.contains_key(API_SERVER));
    Values {
        cluster: inputs.cluster,
        node: ThisNode {
            node: NodeValues {
                name: goal.name.to_string(),
                roles: goal.roles.clone(),
                labels: inputs.spec.labels.clone(),
                taints: inputs.spec.taints.clone(),
                address: inputs.spec.ssh.host.clone(),
                control_plane_ip: Some(goal.control_plane_ip),
                workload_plane_ip: Some(workload_plane_ip),
                api_server: goal.has(Role::Master) && has_served,
                vars: BTreeMap::new(),
            },
            control_plane_interface: Some(interface(&goal.networks.control_plane)),
            workload_plane_interface: Some(interface(workload_plane)),
            pod_cidr: Some(node.and_then(|node| node.pod_cidr.clone()).unwrap_or_default()),
            join_token: join_token(world.survey.as_ref(), inputs.join_token),
            etcd: Some(EtcdValues {
                initial_cluster: initial_cluster.to_owned(),
                initial_cluster_state: initial_cluster_state.to_owned(),
                endpoints: etcd_endpoints(goal, world),
            }),
        },
        facts: Some(facts),
        peers: world
            .peers
            .iter()
            .flatten()
            .map(|(name, peer)| (name.clone(), peer_values(name, peer)))
            .collect(),
    }
}

/// A kubelet with a certificate needs no token.
fn join_token(survey: Option<&Survey>, token: &str) -> Option<String> {
    (!survey.is_some_and(|survey| survey.joined)).then(|| token.to_owned())
}

fn etcd_endpoints(goal: &Goal, world: &World) -> Vec<String> {
    if goal.has(Role::Etcd) {
        return vec![format!("https://{}:2379", goal.control_plane_ip)];
    }
    let members = world.membership.iter().flat_map(|membership| membership.voters());
    members.flat_map(|member| member.client_urls.iter().cloned()).collect()
}

fn peer_values(name: &str, peer: &Peer) -> NodeValues {
    NodeValues {
        name: name.to_owned(),
        roles: roles_of(&peer.labels),
        labels: peer.labels.clone(),
        taints: peer.taints.clone(),
        address: peer.address.clone(),
        control_plane_ip: peer.control_plane_ip,
        workload_plane_ip: peer.workload_plane_ip,
        // Without a recorded address a proxy could not use it.
        api_server: peer.api_server && peer.control_plane_ip.is_some(),
        vars: BTreeMap::new(),
    }
}
