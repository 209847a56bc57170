//! Deploying a node: a machine becomes part of a cluster that exists.

use std::net::Ipv4Addr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::contract::{Begun, Operation, PhaseEntry, World};
use super::effect::{Action, LookKey, Observation};
use super::goal::{NodeGoal, peer_url};
use super::parts::cluster::ClusterPart;
use super::parts::etcd::{EtcdBegun, EtcdPart};
use super::parts::host::{HostBegun, HostPart};
use super::parts::node::{NodeBegun, NodePart};
use super::phases;
use crate::model::event::OperationKind;

/// The operation.
#[derive(Debug)]
pub struct DeployOperation;

impl Operation for DeployOperation {
    type Goal = NodeGoal;
    type World = NodeWorld;
    type Begun = NodeRunBegun;

    const KIND: OperationKind = OperationKind::Deployment;

    const PHASES: &'static [PhaseEntry<Self>] = &[
        PhaseEntry { phase: &phases::reachable::Reachable, needs: &[] },
        PhaseEntry { phase: &phases::preflight::Preflight, needs: &["Reachable"] },
        PhaseEntry { phase: &phases::roles_withdrawn::RolesWithdrawn, needs: &["Preflight"] },
        PhaseEntry { phase: &phases::base_system::BaseSystem, needs: &["Preflight", "Roles withdrawn"] },
        PhaseEntry { phase: &phases::etcd_member::EtcdMember, needs: &["Base system"] },
        PhaseEntry { phase: &phases::etcd_voter::EtcdVoter, needs: &["etcd member"] },
        PhaseEntry { phase: &phases::node_joined::NodeJoined, needs: &["Base system"] },
        // After the member is started: its own files come first, and it needs seconds to mature.
        PhaseEntry {
            phase: &phases::control_plane_files::ControlPlaneFiles,
            needs: &["Base system", "etcd member"],
        },
        PhaseEntry {
            phase: &phases::control_plane::ControlPlane,
            needs: &["Node joined", "Control plane files", "etcd voter"],
        },
        PhaseEntry {
            phase: &phases::apiserver_proxies::ApiServerProxies,
            needs: &["Node joined", "Control plane"],
        },
        PhaseEntry { phase: &phases::mirror_announced::MirrorAnnounced, needs: &["Node joined"] },
        PhaseEntry {
            phase: &phases::end_state::EndState,
            needs: &["Node joined", "etcd voter", "Control plane"],
        },
    ];
}

/// What was observed of a node and its cluster.
#[derive(Debug, Clone, Default)]
pub struct NodeWorld {
    /// The host.
    pub host: HostPart,
    /// The Node object and its pods.
    pub node: NodePart,
    /// etcd.
    pub etcd: EtcdPart,
    /// The cluster besides.
    pub cluster: ClusterPart,
}

/// What a run on a node has begun.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRunBegun {
    /// On the host.
    pub host: HostBegun,
    /// With the Node object and its pods.
    pub node: NodeBegun,
    /// With etcd.
    pub etcd: EtcdBegun,
}

impl NodeWorld {
    /// What the node's own pod network would be; that of the first node is known.
    fn pod_cidr(goal: &NodeGoal) -> String {
        let network = goal.networks.pods.network();
        let first = goal.first && network != Ipv4Addr::UNSPECIFIED;
        if first { format!("{network}/24") } else { "<assigned by the controller manager>".to_owned() }
    }
}

impl<G: AsRef<NodeGoal>> World<G, NodeRunBegun> for NodeWorld {
    fn put(&mut self, goal: &G, begun: &mut NodeRunBegun, observation: Observation, now: Duration) {
        self.host.put(&mut begun.host, &observation, now);
        let goal = goal.as_ref();
        self.node.put(&mut begun.node, &observation, goal.leaves);
        self.cluster.put(&observation);
        let facts = self.host.facts.as_ref();
        let address = facts.and_then(|facts| goal.address(facts, self.node.recorded_address()).ok());
        let own = address.map(peer_url);
        self.etcd.put(&mut begun.etcd, &observation, own.as_deref(), now);
    }

    fn forget(&mut self, key: &LookKey) {
        self.host.forget(key);
        self.node.forget(key);
        self.etcd.forget(key);
        self.cluster.forget(key);
    }

    fn predict(&mut self, goal: &G, begun: &mut NodeRunBegun, action: &Action) {
        let goal = goal.as_ref();
        let facts = self.host.facts.clone();
        self.host.predict(action);
        self.node.predict(action, facts.as_ref(), &Self::pod_cidr(goal), &goal.pods());
        self.node.predict_reached(&mut begun.node, action);
        self.etcd.predict(&mut begun.etcd, action, goal.name.as_str());
        self.cluster.predict(action);
    }
}

impl Begun for NodeRunBegun {
    fn attempt(&mut self, action: &Action) {
        self.host.attempt(action);
        self.node.attempt(action);
        self.etcd.attempt(action);
    }

    fn remember(&mut self, action: &Action) {
        self.host.remember(action);
        self.node.remember(action);
        self.etcd.remember(action);
    }

    fn let_go(&self) -> Vec<Action> {
        self.etcd.let_go().into_iter().chain(self.node.let_go()).collect()
    }
}

/// The parts, for phases that are shared between operations.
macro_rules! parts {
    ($whole:ty { $($field:ident: $part:ty),* }) => {
        $(impl AsRef<$part> for $whole {
            fn as_ref(&self) -> &$part {
                &self.$field
            }
        })*
    };
}

parts!(NodeWorld { host: HostPart, node: NodePart, etcd: EtcdPart, cluster: ClusterPart });
parts!(NodeRunBegun { host: HostBegun, node: NodeBegun, etcd: EtcdBegun });
