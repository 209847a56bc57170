//! Everything that was just seen. A part that is `None` was not looked at, or may have changed since.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use super::goal::Goal;
use super::layer::Layer;
use super::phase::{Action, Look};
use super::survey::Survey;
use crate::etcd::member::Membership;
use crate::model::facts::Facts;
use crate::model::node::Taint;
use crate::resource::contract::change::Difference;

/// What is known at one instant of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct World {
    /// Since the run began.
    pub elapsed: Duration,
    /// What the host is.
    pub facts: Option<Facts>,
    /// What is on it that concerns us.
    pub survey: Option<Survey>,
    /// What would change on it.
    pub plans: BTreeMap<Layer, LayerPlan>,
    /// Resources that this run has changed, by the layer that they were changed with.
    pub changed: BTreeMap<Layer, BTreeSet<String>>,
    /// Its Node object; the inner `None` is "there is none".
    pub node: Option<Option<NodeView>>,
    /// The other nodes, by name.
    pub peers: Option<BTreeMap<String, Peer>>,
    /// etcd's members.
    pub membership: Option<Membership>,
    /// One line for each pod that the node's roles bring and that is not ready.
    pub missing_pods: Option<Vec<String>>,
    /// Why the API does not answer, or `None` when it does.
    pub api: Option<Option<String>>,
    /// Why `metalform serve` does not answer, or `None` when it does.
    pub package_service: Option<Option<String>>,
    /// Files of the authorities, and of what they issued for this machine, that are missing.
    pub missing_trust: Option<BTreeSet<String>>,
    /// Images of the bundle that the registry lacks.
    pub missing_images: Option<BTreeSet<String>>,
    /// Objects of the cluster that are missing or differ.
    pub missing_objects: Option<BTreeSet<String>>,
    /// Nodes whose proxy does not know every API server, and nodes that could not be asked.
    pub proxies: Option<Proxies>,
    /// Whether a pod on the node was reached from another one.
    pub reach: Option<Reach>,
    /// How many tokens for the kubelet's first certificate there are, those of killed runs among them.
    pub join_tokens: Option<usize>,
    /// Whether this run holds the lease on etcd's membership.
    pub lease: bool,
    /// Whether this run made a token for the kubelet's first certificate.
    pub join_token: bool,
    /// When our etcd member was first seen without a vote in this run.
    pub learner_since: Option<Duration>,
    /// Whether a pod of ours for the proof is on the node.
    pub reach_pod: bool,
    /// Whether this run removed one that had ended.
    pub reach_pod_replaced: bool,
    /// Whether it was reached in this run.
    pub reach_proved: bool,
    /// Whether this run restarted the kubelet so that it asks for its certificate at once.
    pub kubelet_restarted: bool,
    /// Whether this run took our learner out again, and why.
    pub learner_removed: Option<String>,
}

/// What would change on the host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayerPlan {
    /// Resources that differ, in order.
    pub changes: Vec<(String, Vec<Difference>)>,
    /// Resources that must not be changed, and why.
    pub refused: Vec<(String, String)>,
    /// How many are right.
    pub unchanged: usize,
}

/// A Node object, as far as it concerns an expansion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeView {
    /// Given by the controller manager as soon as the object exists.
    pub pod_cidr: Option<String>,
    /// What the kubelet says of its machine; empty before it registered.
    pub machine_id: String,
    /// `InternalIP` of its status.
    pub internal_ip: Option<IpAddr>,
    /// Its Ready condition.
    pub ready: bool,
    /// The condition's message.
    pub ready_message: String,
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
    /// What its kubelet says of its machine.
    pub machine_id: String,
    /// Recorded when it was deployed.
    pub control_plane_ip: Option<IpAddr>,
    /// Whether its API server was proved.
    pub api_server: bool,
}

/// The proxies of the other nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    /// They do not know every API server.
    pub stale: BTreeSet<String>,
    /// They could not be asked, and why: they are brought up to date when they are back.
    pub unreachable: BTreeMap<String, String>,
}

/// How far the proof has come that pods on the node can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// It has not answered, and what was seen.
    NotYet(String),
    /// It never will, and why: the pod is gone or has ended.
    Ended(String),
    /// It answered.
    Reached,
}

/// A part of the world, as seen.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the field of World with the same name")]
pub enum Seen {
    Facts(Facts),
    Survey(Survey),
    Plan(Layer, LayerPlan),
    Node(Option<NodeView>),
    Peers(BTreeMap<String, Peer>),
    Membership(Membership),
    MissingPods(Vec<String>),
    Api(Option<String>),
    PackageService(Option<String>),
    MissingTrust(BTreeSet<String>),
    MissingImages(BTreeSet<String>),
    MissingObjects(BTreeSet<String>),
    Proxies(Proxies),
    JoinTokens(usize),
    Reach(Reach),
}

impl World {
    /// Takes in what was seen.
    pub fn put(&mut self, goal: &Goal, seen: Seen) {
        match seen {
            Seen::Facts(facts) => self.facts = Some(facts),
            Seen::Survey(survey) => self.survey = Some(survey),
            Seen::Plan(layer, plan) => {
                self.plans.insert(layer, plan);
            }
            Seen::Node(node) => self.node = Some(node),
            Seen::Peers(peers) => self.peers = Some(peers),
            Seen::Membership(membership) => {
                let without_vote = membership
                    .members
                    .iter()
                    .any(|member| member.is_learner && member.peer_urls.contains(&goal.peer_url()));
                self.learner_since = without_vote.then(|| self.learner_since.unwrap_or(self.elapsed));
                self.membership = Some(membership);
            }
            Seen::MissingPods(pods) => self.missing_pods = Some(pods),
            Seen::Api(api) => self.api = Some(api),
            Seen::PackageService(complaint) => self.package_service = Some(complaint),
            Seen::MissingTrust(files) => self.missing_trust = Some(files),
            Seen::MissingImages(images) => self.missing_images = Some(images),
            Seen::MissingObjects(objects) => self.missing_objects = Some(objects),
            Seen::Proxies(proxies) => self.proxies = Some(proxies),
            Seen::JoinTokens(tokens) => self.join_tokens = Some(tokens),
            Seen::Reach(reach) => {
                self.reach_proved |= reach == Reach::Reached;
                self.reach = Some(reach);
            }
        }
    }

    /// Forgets one part, so that it is looked at again.
    pub fn forget(&mut self, look: &Look) {
        match look {
            Look::Facts => self.facts = None,
            Look::Survey => self.survey = None,
            Look::Plan(layer) => {
                self.plans.remove(layer);
            }
            Look::Node => self.node = None,
            Look::Peers => self.peers = None,
            Look::Membership => self.membership = None,
            Look::Pods => self.missing_pods = None,
            Look::Api => self.api = None,
            Look::PackageService => self.package_service = None,
            Look::Trust => self.missing_trust = None,
            Look::Images => self.missing_images = None,
            Look::ClusterObjects => self.missing_objects = None,
            Look::Proxies => self.proxies = None,
            Look::JoinTokens => self.join_tokens = None,
            Look::Reach => self.reach = None,
        }
    }

    /// What the run itself knows after an action, without looking.
    fn remember(&mut self, action: &Action) {
        match action {
            Action::TakeLease => self.lease = true,
            Action::ReleaseLease => self.lease = false,
            Action::CreateJoinToken => self.join_token = true,
            Action::DeleteJoinToken => self.join_token = false,
            Action::StartReachabilityPod => self.reach_pod = true,
            Action::DeleteReachabilityPod => {
                self.reach_pod = false;
                self.reach_pod_replaced |= !self.reach_proved;
            }
            Action::SetAsideMemberData => {
                let member = |layer: &Layer| matches!(layer, Layer::EtcdMember { .. });
                self.plans.retain(|layer, _| !member(layer));
                self.changed.retain(|layer, _| !member(layer));
            }
            Action::RestartKubelet => self.kubelet_restarted = true,
            _ => {}
        }
    }

    /// Takes an action as done that was not, for a dry run; false when what it comes to cannot be foreseen.
    /// What was seen is kept but for what the action is meant to change.
    pub fn assume(&mut self, action: &Action) -> bool {
        self.remember(action);
        match action {
            Action::Apply(layer) => {
                if let Some(plan) = self.plans.get_mut(layer) {
                    plan.changes.clear();
                }
            }
            Action::CreateTrust => self.missing_trust = Some(BTreeSet::new()),
            Action::LoadImages => self.missing_images = Some(BTreeSet::new()),
            Action::ApplyClusterObjects => self.missing_objects = Some(BTreeSet::new()),
            Action::RegisterNode => self.node = Some(Some(NodeView::default())),
            Action::Annotate(annotations) => {
                let node = self.node.get_or_insert_default().get_or_insert_default();
                node.annotations.extend(annotations.iter().cloned());
            }
            Action::SetAsideMemberData => {
                if let Some(survey) = &mut self.survey {
                    survey.etcd_data = false;
                }
            }
            Action::UpdateProxies(nodes) => {
                if let Some(proxies) = &mut self.proxies {
                    proxies.stale.retain(|node| !nodes.contains(node));
                }
            }
            Action::DeleteJoinToken => self.join_tokens = Some(0),
            Action::ChangeMembership(_) => return false,
            Action::TakeLease
            | Action::ReleaseLease
            | Action::CreateJoinToken
            | Action::StartReachabilityPod
            | Action::DeleteReachabilityPod
            | Action::RestartKubelet => {}
        }
        true
    }

    /// Takes in that an action was done.
    pub fn done(&mut self, action: &Action) {
        use crate::etcd::membership::Change;
        self.remember(action);
        if let Action::ChangeMembership(Change::Remove { why, .. }) = action {
            self.learner_removed = Some(why.clone());
        }
        if let Action::Apply(layer) = action
            && let Some(plan) = self.plans.get(layer)
        {
            let ids = plan.changes.iter().map(|(id, _)| id.clone());
            self.changed.entry(layer.clone()).or_default().extend(ids);
        }
        for look in action.disturbs() {
            self.forget(&look);
        }
    }

    /// Whether this run has changed a resource with this layer already. What differs again after that will not
    /// come right by doing it once more.
    pub fn was_changed(&self, layer: &Layer, id: &str) -> bool {
        self.changed.get(layer).is_some_and(|ids| ids.contains(id))
    }
}
