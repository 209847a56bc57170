//! Node objects, and whether pods on a node are reached.

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::NodeAddress;

use crate::model::api_contract::CONTROL_PLANE_IP;
use crate::model::facts::Facts;
use crate::model::node::{Taint, roles_of};
use crate::model::role::Role;

/// A Node object, as far as operations read it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeView {
    /// Assigned by the controller manager as soon as the object exists.
    pub pod_cidr: Option<String>,
    /// As the kubelet reports it; empty before it has registered.
    pub machine_id: String,
    /// Of its status, in order.
    pub addresses: Vec<NodeAddress>,
    /// Whether it has the taint of a Node that a kubelet created itself.
    pub uninitialized: bool,
    /// Its Ready condition.
    pub ready: bool,
    /// The condition's message.
    pub ready_message: String,
    /// Whether no new pod is placed on it.
    pub unschedulable: bool,
    /// Whether its status has a capacity.
    pub has_capacity: bool,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
}

/// Another node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Peer {
    /// Labels of the Node.
    pub labels: BTreeMap<String, String>,
    /// Taints of the Node, without those that Kubernetes adds and removes itself.
    pub taints: Vec<Taint>,
    /// The address or name that SSH connects to; empty where it is not recorded.
    pub address: String,
    /// Recorded when it was deployed.
    pub workload_plane_ip: Option<IpAddr>,
    /// As its kubelet reports it.
    pub machine_id: String,
    /// Recorded when it was deployed.
    pub control_plane_ip: Option<IpAddr>,
    /// Whether its API server was ready once.
    pub api_server: bool,
    /// Its Ready condition.
    pub ready: bool,
    /// Whether its host has reported to this command, earlier than the host of the node, that it is the same machine.
    pub same_machine: bool,
    /// How far this command is with it.
    pub run: RunState,
}

/// How far a command is with one of its nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RunState {
    /// It may still change the node.
    #[default]
    Runs,
    /// It has deployed it, or has tried to.
    Ended,
    /// A dry run, which does not depend on how far it is: the node is taken to become what is planned.
    Foreseen,
}

/// Whether a pod on the node answers from this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reachability {
    /// It has not answered, and what was seen.
    NotYet(String),
    /// It never will, and why: the pod is gone or has ended.
    Ended(String),
    /// It answered.
    Reached,
}

impl Peer {
    /// Whether its kubelet reports the machine with these facts. Any kubelet can report any machine ID, so this counts
    /// only where the Node that the machine is to be is not known to be of it ([`NodeView::is_of`]).
    pub fn claims(&self, facts: &Facts) -> bool {
        facts.are_of(&self.machine_id)
    }

    /// Where its API server is reached, if proxies may use it: it was ready once, its address is recorded, and it is a
    /// master. NodeRestriction refuses the label to kubelets, metalform's admission policy the annotations.
    pub fn api_server_address(&self) -> Option<IpAddr> {
        let is_master = roles_of(&self.labels).contains(&Role::Master);
        self.control_plane_ip.filter(|_| self.api_server && is_master)
    }

    /// Where its etcd member is reached, if it has one already: its address is recorded, and it is an etcd node.
    pub fn etcd_address(&self) -> Option<IpAddr> {
        self.control_plane_ip.filter(|_| roles_of(&self.labels).contains(&Role::Etcd))
    }
}

impl NodeView {
    /// The first `InternalIP` of its status: where the API server connects to the kubelet.
    pub fn internal_ip(&self) -> Option<IpAddr> {
        self.addresses.iter().find(|address| address.type_ == "InternalIP")?.address.parse().ok()
    }

    /// Whether its kubelet reports the machine with these facts.
    pub fn is_of(&self, facts: &Facts) -> bool {
        facts.are_of(&self.machine_id)
    }

    /// The address on the control plane that is recorded on the Node.
    pub fn recorded_address(&self) -> Option<IpAddr> {
        self.annotations.get(CONTROL_PLANE_IP)?.parse().ok()
    }
}
