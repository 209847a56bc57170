//! What the states of a node are rendered from, besides the cluster's own values.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::goal::NodeGoal;
use crate::etcd::member::Membership;
use crate::model::api_contract::API_SERVER;
use crate::model::facts::Facts;
use crate::model::role::Role;
use crate::operation::observed::node::{NodeView, Peer};

/// Observed values at one instant: a plan that was made from them is carried out as it is.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeInputs {
    /// The node that shall be.
    pub goal: NodeGoal,
    /// Its address on the control plane.
    pub address: IpAddr,
    /// The host.
    pub facts: Facts,
    /// Whether the kubelet has its certificate.
    pub joined: bool,
    /// The Node object.
    pub node: Option<NodeView>,
    /// The other nodes, by name.
    pub peers: BTreeMap<String, Peer>,
    /// etcd's members, where the node needs them.
    pub membership: Option<Membership>,
}

impl NodeInputs {
    /// Of another node that is deployed. `nodes` are all of the cluster; `None` when it is not one of them, or has
    /// no recorded address.
    pub fn of_peer(goal: NodeGoal, facts: Facts, nodes: &BTreeMap<String, Peer>) -> Option<Self> {
        let peer = nodes.get(goal.name.as_str())?;
        let marked = peer.api_server.then(|| (API_SERVER.to_owned(), "ready".to_owned()));
        let node = NodeView { annotations: marked.into_iter().collect(), ..NodeView::default() };
        let mut peers = nodes.clone();
        peers.remove(goal.name.as_str());
        Some(Self {
            address: peer.control_plane_ip?,
            goal,
            facts,
            joined: true,
            node: Some(node),
            peers,
            membership: None,
        })
    }

    /// The part of the pod network that is this node's.
    pub fn pod_cidr(&self) -> Option<String> {
        self.node.as_ref().and_then(|node| node.pod_cidr.clone())
    }

    /// Whether the node has an API server that proxies may use.
    pub fn serves_the_api(&self) -> bool {
        self.goal.first || self.node.as_ref().is_some_and(|node| node.annotations.contains_key(API_SERVER))
    }

    /// Whether there is an API server that the proxy of the node may use.
    pub fn has_api_servers(&self) -> bool {
        let own = self.goal.has(Role::Master) && self.serves_the_api();
        own || self.peers.values().any(|peer| peer.api_server_address().is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proxy_of_a_peer_has_servers_while_any_api_server_is_recorded() {
        let master = |api_server| Peer {
            labels: BTreeMap::from([(Role::Master.label(), String::new())]),
            control_plane_ip: Some([192, 0, 2, 2].into()),
            api_server,
            ..Peer::default()
        };
        let has_api_servers = |role: Role, own: Peer, other: Peer| {
            let goal = crate::operation::tests::goal([role]);
            let nodes = BTreeMap::from([(goal.name.to_string(), own), ("other".to_owned(), other)]);
            let facts = crate::engine::roster::tests::facts();
            NodeInputs::of_peer(goal, facts, &nodes).unwrap().has_api_servers()
        };
        let worker = Peer { labels: BTreeMap::new(), ..master(false) };
        assert!(has_api_servers(Role::Node, worker.clone(), master(true)));
        assert!(has_api_servers(Role::Master, master(true), master(false)));
        assert!(!has_api_servers(Role::Master, master(false), master(false)));
        assert!(!has_api_servers(Role::Node, worker, master(false)));
    }
}
