//! What the states of a node are rendered from, besides the cluster's own values.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::goal::NodeGoal;
use crate::etcd::member::Membership;
use crate::model::api_contract::API_SERVER;
use crate::model::facts::Facts;
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
}
