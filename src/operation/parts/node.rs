//! The Node object, the other nodes, and the pods of the node.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::etcd::membership::MembershipChange;
use crate::kube_api::eviction::DrainPod;
use crate::kube_api::node_addresses::address_annotations;
use crate::kube_api::pods::ExpectedPod;
use crate::model::api_contract::{API_SERVER, CORDONED, SSH_HOST};
use crate::model::facts::Facts;
use crate::operation::effect::{Action, LookKey, Observation};
use crate::operation::layer::Layer;
use crate::operation::observed::node::{NodeView, Peer, Reachability};

/// What was observed through the API.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodePart {
    /// The Node object; the inner `None` is "there is none".
    pub node: Option<Option<NodeView>>,
    /// The other nodes, by name.
    pub peers: Option<BTreeMap<String, Peer>>,
    /// One line for each pod that is not ready, by the pods that were looked at.
    pub missing_pods: BTreeMap<Vec<ExpectedPod>, Vec<String>>,
    /// The pods that must leave the node.
    pub pods_to_drain: Option<Vec<DrainPod>>,
    /// How many join tokens there are for this node, those of killed runs included.
    pub join_tokens: Option<usize>,
    /// Whether the reachability pod was reached.
    pub reachability: Option<Reachability>,
    /// Whether the gateway of the node's pods answers, and no pod of a killed run is left.
    pub pod_gateway: Option<bool>,
}

/// What this run has begun.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeBegun {
    /// Whether this run created a join token that still exists.
    pub join_token: bool,
    /// Whether this run set the capacity of the Node.
    pub capacity: bool,
    /// Whether this run has seen the Node without the record that its API server is ready.
    pub api_server_unrecorded: bool,
    /// Whether this run started a reachability pod that still exists.
    pub reachability_pod: bool,
    /// Whether this run deleted a reachability pod that had ended.
    pub reachability_pod_replaced: bool,
    /// Whether the pod was reached in this run.
    pub reached: bool,
    /// Whether the node is cordoned by metalform: by this run, or by one that was killed.
    pub cordoned: bool,
    /// Whether this run has withdrawn anything of it from the cluster, or may have stopped it: it stays cordoned.
    pub withdrawn: bool,
}

impl NodePart {
    /// The address on the control plane that is recorded on the Node, if it was looked at.
    pub fn recorded_address(&self) -> Option<IpAddr> {
        self.node.as_ref()?.as_ref()?.recorded_address()
    }

    /// Takes in what is this part's. A node that `leaves` may have been cordoned by an earlier run.
    pub fn put(&mut self, begun: &mut NodeBegun, observation: &Observation, leaves: bool) {
        match observation {
            Observation::Node(node) => {
                let cordoned = node.as_ref().is_some_and(|node| node.annotations.contains_key(CORDONED));
                begun.cordoned = leaves && cordoned;
                begun.api_server_unrecorded |=
                    !node.as_ref().is_some_and(|node| node.annotations.contains_key(API_SERVER));
                self.node = Some(node.clone());
            }
            Observation::Peers(peers) => self.peers = Some(peers.clone()),
            Observation::Pods(expected, missing) => {
                self.missing_pods.insert(expected.clone(), missing.clone());
            }
            Observation::PodsToDrain(pods) => self.pods_to_drain = Some(pods.clone()),
            Observation::JoinTokens(tokens) => self.join_tokens = Some(*tokens),
            Observation::Reachability(reachability) => {
                begun.reached |= *reachability == Reachability::Reached;
                self.reachability = Some(reachability.clone());
            }
            Observation::PodGateway(answers) => self.pod_gateway = Some(*answers),
            _ => {}
        }
    }

    /// Forgets what is this part's.
    pub fn forget(&mut self, key: &LookKey) {
        match key {
            LookKey::Node => self.node = None,
            LookKey::Peers => self.peers = None,
            LookKey::Pods => self.missing_pods.clear(),
            LookKey::PodsToDrain => self.pods_to_drain = None,
            LookKey::JoinTokens => self.join_tokens = None,
            LookKey::Reachability => self.reachability = None,
            LookKey::PodGateway => self.pod_gateway = None,
            _ => {}
        }
    }

    /// Takes an action as done. `pod_cidr` is what the node would be assigned, `pods` are those of its roles.
    pub fn predict(&mut self, action: &Action, facts: Option<&Facts>, pod_cidr: &str, pods: &[ExpectedPod]) {
        match action {
            Action::RegisterNode(address) => {
                let view = self.view();
                view.pod_cidr.get_or_insert_with(|| pod_cidr.to_owned());
                view.annotations.insert(SSH_HOST.to_owned(), address.to_string());
            }
            Action::Apply(Layer::Base, _) => self.predict_registered(facts),
            Action::Apply(Layer::First, _) => {
                self.node.get_or_insert(None);
                self.peers.get_or_insert_with(BTreeMap::new);
            }
            Action::Apply(Layer::ControlPlane | Layer::EtcdMember { .. }, _) => {
                self.missing_pods.insert(pods.to_vec(), Vec::new());
                let alone = ["etcd", "kube-apiserver"].map(|name| vec![ExpectedPod::Static(name.to_owned())]);
                self.missing_pods.extend(alone.map(|pod| (pod, Vec::new())));
            }
            Action::SetCapacity(_) => self.view().has_capacity = true,
            Action::RecordAddresses { control_plane, workload_plane, status } => {
                let view = self.view();
                view.annotations.extend(address_annotations(*control_plane, *workload_plane, status));
                view.addresses.clone_from(status);
            }
            Action::RemoveUninitializedTaint => self.view().uninitialized = false,
            Action::MarkApiServerReady => {
                self.view().annotations.insert(API_SERVER.to_owned(), "ready".to_owned());
            }
            Action::Cordon => self.view().unschedulable = true,
            Action::Uncordon => {
                self.view().unschedulable = false;
                self.view().annotations.remove(CORDONED);
            }
            Action::EvictPods(evicted) => {
                self.pods_to_drain
                    .iter_mut()
                    .for_each(|pods| pods.retain(|pod| !evicted.contains(&pod.name)));
            }
            Action::WithdrawApiServer => {
                self.view().annotations.remove(API_SERVER);
            }
            Action::DeleteNode => self.node = Some(None),
            Action::CreateJoinToken => self.join_tokens = Some(1),
            Action::DeleteJoinTokens => self.join_tokens = Some(0),
            Action::StartReachabilityPod => {
                self.reachability = Some(Reachability::Reached);
                self.missing_pods.insert(pods.to_vec(), Vec::new());
            }
            _ => {}
        }
    }

    /// Takes the pod on the node as reached once it is started.
    pub fn predict_reached(&self, begun: &mut NodeBegun, action: &Action) {
        begun.reached |= matches!(action, Action::StartReachabilityPod);
    }

    fn view(&mut self) -> &mut NodeView {
        self.node.get_or_insert_default().get_or_insert_default()
    }

    /// The kubelet has registered for this machine, and the node is Ready.
    fn predict_registered(&mut self, facts: Option<&Facts>) {
        let view = self.view();
        if let Some(facts) = facts {
            view.machine_id.clone_from(&facts.machine_id);
        }
        view.ready = true;
    }
}

impl NodeBegun {
    /// Takes in that an action is about to be done: where it fails half-way, the kubelet may be stopped for good.
    pub fn attempt(&mut self, action: &Action) {
        self.withdrawn |= matches!(action, Action::StopNode);
    }

    /// Takes in that an action was done.
    pub fn remember(&mut self, action: &Action) {
        match action {
            Action::CreateJoinToken => self.join_token = true,
            Action::DeleteJoinTokens => self.join_token = false,
            Action::SetCapacity(_) => self.capacity = true,
            Action::Cordon => self.cordoned = true,
            Action::Uncordon => self.cordoned = false,
            Action::WithdrawApiServer | Action::StopControlPlane | Action::DeleteNode => {
                self.withdrawn = true;
            }
            // A removal has put it back: nothing else of the node is withdrawn before its API server.
            Action::MarkApiServerReady => self.withdrawn = false,
            Action::ChangeMembership(MembershipChange::Retire { .. }, _) => self.withdrawn = true,
            Action::StartReachabilityPod => self.reachability_pod = true,
            Action::DeleteReachabilityPod => {
                self.reachability_pod = false;
                self.reachability_pod_replaced |= !self.reached;
            }
            _ => {}
        }
    }

    /// What must not remain.
    pub fn let_go(&self) -> Vec<Action> {
        let token = self.join_token.then_some(Action::DeleteJoinTokens);
        let pod = self.reachability_pod.then_some(Action::DeleteReachabilityPod);
        let cordon = (self.cordoned && !self.withdrawn).then_some(Action::Uncordon);
        token.into_iter().chain(pod).chain(cordon).collect()
    }
}
