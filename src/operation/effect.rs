//! What an operation can look at and do. An effect carries everything that it needs, does one thing, and has one
//! sentence, a deadline and a class; who performs it decides nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::class::FailureClass;
use super::host_access::HostPlan;
use super::inputs::NodeInputs;
use super::layer::Layer;
use super::parts::cluster::ProxyView;
use super::parts::etcd::LeaseView;
use super::parts::host::{ContainerReport, LayerPlan, UnitReport};
use super::parts::node::{NodeView, Peer, Reachability};
use super::survey::Survey;
use crate::etcd::member::Membership;
use crate::etcd::membership::MembershipChange;
use crate::kube_api::nodes::Capacity;
use crate::kube_api::pods::ExpectedPod;
use crate::model::facts::Facts;
use crate::resource::contract::change::Difference;

/// One thing to observe. Changes nothing.
#[derive(Debug, Clone)]
pub enum Look {
    /// What the host is.
    Facts,
    /// What is on the host that conflicts with a node, or is part of one already.
    Survey,
    /// What differs from the states of a layer, rendered from these inputs.
    Plan(Layer, Arc<NodeInputs>),
    /// A systemd unit, and the last errors in its journal.
    Unit(String),
    /// The container of a static pod, and its last log line.
    Container(String),
    /// The Node object.
    Node,
    /// The other Node objects.
    Peers,
    /// These pods of the node.
    Pods(Vec<ExpectedPod>),
    /// The tokens for the kubelet's first certificate.
    JoinTokens,
    /// Whether the reachability pod answers.
    Reachability,
    /// etcd's members, asked through these client URLs.
    Membership(Vec<String>),
    /// The holder of the lease on etcd membership.
    Lease,
    /// Whether the API server is ready.
    Api,
    /// Whether the proxy of this other node has every API server of these nodes, its own included.
    Proxy(String, Arc<BTreeMap<String, Peer>>),
    /// Which files of the CAs, and of what they issued to this machine, are missing.
    Trust,
    /// Whether `metalform serve` accepts connections.
    PackageService,
    /// Whether the registry accepts connections.
    Registry,
    /// Which images of the bundle the registry lacks.
    Images,
    /// Which of the cluster's own objects are missing or differ.
    Objects(Arc<NodeInputs>),
}

/// Names what a look fills in: the part of the world, without the inputs of the look.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each is the look of the same name")]
pub enum LookKey {
    Facts,
    Survey,
    Plan(Layer),
    /// Every plan in which something differs.
    PendingPlans,
    Unit(String),
    Container(String),
    Node,
    Peers,
    Pods,
    JoinTokens,
    Reachability,
    Membership,
    Lease,
    Api,
    Proxy(String),
    Trust,
    PackageService,
    Registry,
    Images,
    Objects,
}

/// What a look found.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "each is the result of the look of the same name")]
pub enum Observation {
    Facts(Facts),
    Survey(Survey),
    Plan(Layer, LayerPlan),
    Unit(String, UnitReport),
    Container(String, ContainerReport),
    /// `None`: there is no Node object.
    Node(Option<NodeView>),
    Peers(BTreeMap<String, Peer>),
    /// One line for each pod that is not ready.
    Pods(Vec<String>),
    /// How many.
    JoinTokens(usize),
    Reachability(Reachability),
    Membership(Membership),
    Lease(LeaseView),
    /// Why it is not ready.
    Api(Option<String>),
    Proxy(String, ProxyView),
    Trust(BTreeSet<String>),
    /// Why it does not accept connections.
    PackageService(Option<String>),
    /// Why it does not accept connections.
    Registry(Option<String>),
    Images(BTreeSet<String>),
    Objects(BTreeSet<String>),
}

/// One thing to do. Doing it twice is the same as doing it once.
#[derive(Debug, Clone)]
pub enum Action {
    /// Carry out a plan for a layer, until nothing differs.
    Apply(Layer, Arc<HostPlan>),
    /// Move the data of a removed member out of the data directory, and its static pod away.
    SetAsideMemberData,
    /// Restart the kubelet, which would request its certificate again only after its back-off.
    RestartKubelet,
    /// Create the token with which the kubelet requests its first certificate.
    CreateJoinToken,
    /// Delete every token for this node.
    DeleteJoinTokens,
    /// Set the capacity of a Node that no kubelet has reported for.
    SetCapacity(Capacity),
    /// Annotate the Node with its addresses.
    RecordAddresses {
        /// On the control plane.
        control_plane: IpAddr,
        /// On the workload plane.
        workload_plane: IpAddr,
    },
    /// Annotate the Node: its API server was ready once, so proxies may use it.
    MarkApiServerReady,
    /// Create the Node object of the bootstrap node, with this address for SSH.
    RegisterNode(IpAddr),
    /// Start the pod on the node that answers over HTTP.
    StartReachabilityPod,
    /// Delete that pod.
    DeleteReachabilityPod,
    /// Acquire the lease on etcd membership, if it is free.
    TakeLease,
    /// Release it.
    ReleaseLease,
    /// Change etcd membership, through a member of this list.
    ChangeMembership(MembershipChange, Arc<Membership>),
    /// Carry out a plan for the proxy of another node.
    UpdateProxy(String, Arc<HostPlan>),
    /// Create these files: CAs and keys, and what they issue to this machine.
    CreateTrust(BTreeSet<String>),
    /// Load these images into the registry.
    LoadImages(BTreeSet<String>),
    /// Create or update these objects of the cluster, rendered from the inputs.
    ApplyObjects(BTreeSet<String>, Arc<NodeInputs>),
}

/// What an action changes. Two actions that change the same thing do not run at the same time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Target {
    /// The host of the operation.
    Host,
    /// Another host, by node name.
    Peer(String),
    /// The Node object.
    Node,
    /// Tokens for this node.
    JoinTokens,
    /// The reachability pod.
    ReachabilityPod,
    /// etcd membership and its lease.
    Etcd,
    /// Objects of the whole cluster.
    Objects,
    /// CAs and keys on the bootstrap node.
    Trust,
    /// The registry's contents.
    Registry,
}

/// What an action returns.
#[derive(Debug, Clone, Default)]
pub struct Returned {
    /// Resources and objects that were changed.
    pub changed: usize,
    /// What the action itself observed at its end.
    pub observed: Vec<Observation>,
}

const SECOND: Duration = Duration::from_secs(1);

/// The id by which a member is known in a dry run, before etcd assigns one.
pub const PREDICTED_MEMBER: u64 = u64::MAX;

/// A member id for people.
pub fn member_id(id: u64) -> String {
    if id == PREDICTED_MEMBER { "<assigned by etcd>".to_owned() } else { format!("{id:x}") }
}

impl Look {
    /// The part of the world that it fills in.
    pub fn key(&self) -> LookKey {
        match self {
            Self::Facts => LookKey::Facts,
            Self::Survey => LookKey::Survey,
            Self::Plan(layer, _) => LookKey::Plan(layer.clone()),
            Self::Unit(name) => LookKey::Unit(name.clone()),
            Self::Container(name) => LookKey::Container(name.clone()),
            Self::Node => LookKey::Node,
            Self::Peers => LookKey::Peers,
            Self::Pods(_) => LookKey::Pods,
            Self::JoinTokens => LookKey::JoinTokens,
            Self::Reachability => LookKey::Reachability,
            Self::Membership(_) => LookKey::Membership,
            Self::Lease => LookKey::Lease,
            Self::Api => LookKey::Api,
            Self::Proxy(node, _) => LookKey::Proxy(node.clone()),
            Self::Trust => LookKey::Trust,
            Self::PackageService => LookKey::PackageService,
            Self::Registry => LookKey::Registry,
            Self::Images => LookKey::Images,
            Self::Objects(_) => LookKey::Objects,
        }
    }

    /// `get the Node`, for "could not ...".
    pub fn sentence(&self) -> String {
        match self {
            Self::Facts => "gather the facts of the host".to_owned(),
            Self::Survey => "inspect the host".to_owned(),
            Self::Plan(layer, _) => format!("plan {}", layer.title()),
            Self::Unit(name) => format!("inspect unit {name}"),
            Self::Container(name) => format!("inspect container {name}"),
            Self::Node => "get the Node".to_owned(),
            Self::Peers => "list the Nodes".to_owned(),
            Self::Pods(_) => "list the pods of the node".to_owned(),
            Self::JoinTokens => "list the join tokens of the node".to_owned(),
            Self::Reachability => "reach the pod on the node".to_owned(),
            Self::Membership(_) => "list the etcd members".to_owned(),
            Self::Lease => "get the lease on etcd membership".to_owned(),
            Self::Api => "check the API server".to_owned(),
            Self::Proxy(node, _) => format!("plan the API server proxy of {node}"),
            Self::Trust => "check the CA files".to_owned(),
            Self::PackageService => "connect to metalform serve".to_owned(),
            Self::Registry => "connect to the image registry".to_owned(),
            Self::Images => "list the images of the registry".to_owned(),
            Self::Objects(_) => "compare the cluster objects".to_owned(),
        }
    }

    /// How long it may take.
    pub fn deadline(&self) -> Duration {
        match self {
            // The connection is made, and sudo may ask for a password.
            Self::Facts => 150 * SECOND,
            Self::Survey | Self::Plan(..) => 300 * SECOND,
            Self::Unit(_) | Self::Container(_) => 10 * SECOND,
            Self::Proxy(..) => 60 * SECOND,
            Self::Images | Self::Objects(_) => 120 * SECOND,
            _ => 15 * SECOND,
        }
    }

    /// Where a failure is to be looked for when nothing more is known than that it did not finish.
    pub fn class(&self) -> FailureClass {
        match self {
            Self::Facts
            | Self::Survey
            | Self::Plan(..)
            | Self::Unit(_)
            | Self::Container(_)
            | Self::Proxy(..) => FailureClass::Ssh,
            Self::Membership(_) => FailureClass::Etcd,
            Self::Trust => FailureClass::Configuration,
            Self::PackageService | Self::Registry | Self::Images => FailureClass::Host,
            _ => FailureClass::Api,
        }
    }

    /// What is taken as observed when the host concerned is out of reach and the operation goes on without it.
    pub fn without_answer(&self, reason: &str) -> Option<Observation> {
        match self {
            Self::Proxy(node, _) => {
                Some(Observation::Proxy(node.clone(), ProxyView::Unreachable(reason.to_owned())))
            }
            _ => None,
        }
    }
}

impl LookKey {
    /// Whether what this names includes the other.
    pub fn includes(&self, other: &Self) -> bool {
        self == other || matches!((self, other), (Self::PendingPlans, Self::Plan(_)))
    }
}

impl Action {
    /// For people: `add https://192.0.2.11:2380 to etcd as a learner`.
    pub fn sentence(&self) -> String {
        match self {
            Self::Apply(layer, _) => format!("apply {}", layer.title()),
            Self::SetAsideMemberData => "set aside the data of a removed etcd member".to_owned(),
            Self::RestartKubelet => "restart the kubelet".to_owned(),
            Self::CreateJoinToken => "create a join token".to_owned(),
            Self::DeleteJoinTokens => "delete the join token".to_owned(),
            Self::SetCapacity(_) => "set the capacity of the Node".to_owned(),
            Self::RecordAddresses { .. } => "record the addresses of the node".to_owned(),
            Self::MarkApiServerReady => "record that the API server is ready".to_owned(),
            Self::RegisterNode(_) => "create the Node object".to_owned(),
            Self::StartReachabilityPod => "start a pod on the node".to_owned(),
            Self::DeleteReachabilityPod => "delete that pod".to_owned(),
            Self::TakeLease => "take the lease on etcd membership".to_owned(),
            Self::ReleaseLease => "release the lease on etcd membership".to_owned(),
            Self::ChangeMembership(MembershipChange::AddLearner { peer_url }, _) => {
                format!("add {peer_url} to etcd as a learner")
            }
            Self::ChangeMembership(MembershipChange::Promote { id }, _) => {
                format!("promote etcd learner {} to voter", member_id(*id))
            }
            Self::ChangeMembership(MembershipChange::Remove { id, why }, _) => {
                format!("remove etcd member {}: it {why}", member_id(*id))
            }
            Self::UpdateProxy(node, _) => format!("update the API server proxy of {node}"),
            Self::CreateTrust(_) => "create the CAs and the certificates of this machine".to_owned(),
            Self::LoadImages(_) => "load images into the registry".to_owned(),
            Self::ApplyObjects(..) => "apply access rules and CoreDNS".to_owned(),
        }
    }

    /// Whether anything of it remains after the run. The run that creates a token, the lease or the
    /// reachability pod also deletes it.
    pub fn lasts(&self) -> bool {
        !matches!(
            self,
            Self::CreateJoinToken
                | Self::DeleteJoinTokens
                | Self::TakeLease
                | Self::ReleaseLease
                | Self::StartReachabilityPod
                | Self::DeleteReachabilityPod
        )
    }

    /// What it changes.
    pub fn target(&self) -> Target {
        match self {
            Self::Apply(..) | Self::SetAsideMemberData | Self::RestartKubelet => Target::Host,
            Self::CreateJoinToken | Self::DeleteJoinTokens => Target::JoinTokens,
            Self::SetCapacity(_)
            | Self::RecordAddresses { .. }
            | Self::MarkApiServerReady
            | Self::RegisterNode(_) => Target::Node,
            Self::StartReachabilityPod | Self::DeleteReachabilityPod => Target::ReachabilityPod,
            Self::TakeLease | Self::ReleaseLease | Self::ChangeMembership(..) => Target::Etcd,
            Self::UpdateProxy(node, _) => Target::Peer(node.clone()),
            Self::CreateTrust(_) => Target::Trust,
            Self::LoadImages(_) => Target::Registry,
            Self::ApplyObjects(..) => Target::Objects,
        }
    }

    /// What was observed before and may no longer be so. While the action is in flight, no such look starts.
    pub fn disturbs(&self) -> Vec<LookKey> {
        match self {
            Self::Apply(layer, _) => vec![
                LookKey::PendingPlans,
                LookKey::Plan(layer.clone()),
                LookKey::Survey,
                LookKey::Api,
                LookKey::PackageService,
                LookKey::Registry,
                LookKey::Pods,
            ],
            Self::CreateJoinToken | Self::DeleteJoinTokens => {
                vec![LookKey::JoinTokens, LookKey::Plan(Layer::Base), LookKey::Plan(Layer::Joined)]
            }
            Self::TakeLease | Self::ReleaseLease => vec![LookKey::Membership, LookKey::Lease],
            Self::ChangeMembership(..) => vec![LookKey::Membership],
            Self::SetAsideMemberData => {
                vec![
                    LookKey::Survey,
                    LookKey::Pods,
                    LookKey::PendingPlans,
                    LookKey::Container("etcd".to_owned()),
                ]
            }
            Self::SetCapacity(_) | Self::RecordAddresses { .. } => vec![LookKey::Node, LookKey::Peers],
            Self::MarkApiServerReady | Self::RegisterNode(_) => {
                vec![LookKey::Node, LookKey::Peers, LookKey::Plan(Layer::Proxy)]
            }
            Self::CreateTrust(_) => vec![LookKey::Trust],
            Self::LoadImages(_) => vec![LookKey::Images],
            Self::ApplyObjects(..) => vec![LookKey::Objects],
            Self::RestartKubelet => vec![LookKey::Survey],
            Self::UpdateProxy(node, _) => vec![LookKey::Proxy(node.clone())],
            // The verification begins: what was observed before it may be minutes old.
            Self::StartReachabilityPod => {
                vec![LookKey::Reachability, LookKey::Node, LookKey::Pods, LookKey::Membership]
            }
            Self::DeleteReachabilityPod => vec![LookKey::Reachability],
        }
    }

    /// How long it may take.
    pub fn deadline(&self) -> Duration {
        match self {
            Self::Apply(..) | Self::LoadImages(_) => 3600 * SECOND,
            Self::SetAsideMemberData | Self::RestartKubelet => 120 * SECOND,
            Self::UpdateProxy(..) => 120 * SECOND,
            Self::CreateTrust(_) | Self::ApplyObjects(..) => 120 * SECOND,
            _ => 30 * SECOND,
        }
    }

    /// Where a failure is to be looked for when nothing more is known than that it did not finish.
    pub fn class(&self) -> FailureClass {
        match self.target() {
            Target::Host | Target::Peer(_) | Target::Registry => FailureClass::Host,
            Target::Etcd if matches!(self, Self::ChangeMembership(..)) => FailureClass::Etcd,
            Target::Trust => FailureClass::Configuration,
            _ => FailureClass::Api,
        }
    }

    /// What is taken as observed when the host concerned is out of reach and the operation goes on without it.
    pub fn without_answer(&self, reason: &str) -> Option<Observation> {
        match self {
            Self::UpdateProxy(node, _) => {
                Some(Observation::Proxy(node.clone(), ProxyView::Unreachable(reason.to_owned())))
            }
            _ => None,
        }
    }

    /// What it would change, for a dry run: ids and differences.
    pub fn changes(&self) -> Vec<(String, Vec<Difference>)> {
        let created = |kind: &str, names: &BTreeSet<String>| {
            let difference = |after: &str| Difference::Field {
                name: "state".to_owned(),
                before: None,
                after: Some(after.to_owned()),
            };
            names.iter().map(|name| (format!("{kind}:{name}"), vec![difference("created")])).collect()
        };
        match self {
            Self::Apply(_, plan) | Self::UpdateProxy(_, plan) => plan.changes(),
            Self::CreateTrust(files) => created("file", files),
            Self::LoadImages(images) => created("image", images),
            Self::ApplyObjects(objects, _) => created("object", objects),
            _ => Vec::new(),
        }
    }
}
