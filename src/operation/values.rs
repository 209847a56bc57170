//! The values of a cluster's node, in the contract of [`crate::model::values`].

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::goal::{client_url, interface_of};
use super::inputs::NodeInputs;
use super::layer::Layer;
use super::observed::node::Peer;
use crate::model::cluster::Cluster;
use crate::model::node::{NodeSpec, roles_of};
use crate::model::role::Role;
use crate::model::values::{EtcdValues, NodeValues, ThisNode, Values};
use crate::state::Shapes;

/// Inputs that are the same for every layer of a node; some are secret.
#[derive(Debug, Clone, Copy)]
pub struct ClusterInputs<'a> {
    /// The root `cluster`.
    pub cluster: &'a Cluster,
    /// The node's manifest.
    pub spec: &'a NodeSpec,
    /// The token that this run creates for the kubelet.
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
pub fn values<'a>(inputs: &'a NodeInputs, layer: &Layer, given: ClusterInputs<'a>) -> Values<'a, Cluster> {
    let NodeInputs { goal, facts, address, .. } = inputs;
    let (workload_plane_interface, workload_plane_ip) =
        goal.workload_address(facts).unwrap_or((String::new(), *address));
    let initial_cluster = layer.initial_cluster().unwrap_or_default();
    Values {
        cluster: given.cluster,
        node: ThisNode {
            node: NodeValues {
                name: goal.name.to_string(),
                roles: goal.roles.clone(),
                labels: given.spec.labels.clone(),
                taints: given.spec.taints.clone(),
                address: given.spec.ssh.host.clone(),
                control_plane_ip: Some(*address),
                workload_plane_ip: Some(workload_plane_ip),
                // The first node of a cluster has the only API server.
                api_server: goal.has(Role::Master) && inputs.serves_the_api(),
                vars: BTreeMap::new(),
            },
            mirrors: Some(mirrors(inputs, given.cluster)),
            control_plane_interface: Some(interface_of(facts, *address).unwrap_or_default()),
            workload_plane_interface: Some(workload_plane_interface),
            pod_cidr: Some(inputs.pod_cidr().unwrap_or_default()),
            provider_id: given.spec.provider_id.clone(),
            // A kubelet with a certificate needs no token.
            join_token: (!inputs.joined).then(|| given.join_token.to_owned()),
            etcd: Some(EtcdValues {
                initial_cluster: initial_cluster.to_owned(),
                first_start: layer.is_first_start(),
                endpoints: etcd_endpoints(inputs),
            }),
        },
        facts: Some(facts),
        peers: inputs.peers.iter().map(|(name, peer)| (name.clone(), peer_values(name, peer))).collect(),
    }
}

/// A node that has not been deployed yet serves nothing: it has no recorded address. The bootstrap node needs no copy of
/// what it has.
fn mirrors(inputs: &NodeInputs, cluster: &Cluster) -> Vec<IpAddr> {
    let origin = cluster.mirrors.address;
    if inputs.goal.has(Role::Bootstrap) {
        return vec![origin];
    }
    let own = inputs.goal.has(Role::Mirror).then_some(inputs.address);
    let is_mirror = |peer: &&Peer| roles_of(&peer.labels).contains(&Role::Mirror);
    let others = inputs.peers.values().filter(is_mirror).filter_map(|peer| peer.control_plane_ip);
    let copies: BTreeSet<IpAddr> = others.chain(own).collect();
    std::iter::once(origin).chain(copies).collect()
}

/// The member beside it; where the node is to have none, the others. A member that leaves the node is not listed even while
/// it votes: the list is the same before and after that.
fn etcd_endpoints(inputs: &NodeInputs) -> Vec<String> {
    let own = client_url(inputs.address);
    if inputs.goal.has(Role::Etcd) {
        return vec![own];
    }
    let voters = inputs.membership.iter().flat_map(|membership| membership.voters());
    let all: Vec<String> = voters.flat_map(|member| member.client_urls.iter().cloned()).collect();
    let others: Vec<String> = all.iter().filter(|url| **url != own).cloned().collect();
    // The only voter cannot leave.
    if others.is_empty() { all } else { others }
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
        api_server: peer.api_server_address().is_some(),
        vars: BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcd::simulation::{membership, voter};
    use crate::operation::tests::goal;

    #[test]
    fn an_api_server_without_a_member_uses_every_voter_but_the_one_that_leaves_its_node() {
        let endpoints = |role: Option<Role>, voters: &[&str]| {
            let members = (1..).zip(voters).map(|(id, host)| voter(id, host)).collect();
            etcd_endpoints(&NodeInputs {
                goal: goal([Role::Master].into_iter().chain(role)),
                address: [192, 0, 2, 1].into(),
                facts: crate::engine::roster::tests::facts(),
                joined: true,
                node: None,
                peers: BTreeMap::new(),
                membership: Some(membership(members)),
            })
        };
        let (own, a, b) = ("192.0.2.1", "192.0.2.2", "192.0.2.3");
        for (role, voters, expected) in [
            (Some(Role::Etcd), vec![own, a, b], vec![own]),
            (None, vec![a, b], vec![a, b]),
            (None, vec![own, a, b], vec![a, b]),
            (None, vec![own], vec![own]),
        ] {
            let expected: Vec<String> = expected.iter().map(|host| format!("https://{host}:2379")).collect();
            assert_eq!(endpoints(role, &voters), expected, "{role:?} {voters:?}");
        }
    }
}
