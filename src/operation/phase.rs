//! The shape of a phase, and of what it can ask for.

use std::time::Duration;

use super::goal::Goal;
use super::layer::Layer;
use super::preflight::Failure;
use super::world::World;
use crate::etcd::membership::{Change, Obstacle};

/// One thing that must hold.
pub trait Phase: Sync {
    /// What it is called in the table of phases.
    fn title(&self) -> &'static str;

    /// Whether it is part of this goal at all.
    fn applies(&self, goal: &Goal) -> bool {
        let _ = goal;
        true
    }

    /// The next thing to do so that this phase holds.
    ///
    /// # Guarantees
    /// Pure and total: reads only the goal and what was seen.
    fn next(&self, goal: &Goal, world: &World) -> Next;
}

/// The answer of a phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// It holds.
    Holds,
    /// Something has to be seen before it can be told.
    Look(Look),
    /// Something has to be done.
    Act(Action),
    /// Nothing can be done but wait.
    Wait(Condition),
    /// Waiting does not help.
    Blocked(Blocker),
}

/// Something to observe. Each fills one field of [`World`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Look {
    /// What the host is.
    Facts,
    /// What is on the host that could be in the way, or is ours already.
    Survey,
    /// What would change on the host.
    Plan(Layer),
    /// The Node object.
    Node,
    /// The other nodes.
    Peers,
    /// etcd's members.
    Membership,
    /// The pods on the node.
    Pods,
    /// Whether the API answers at all.
    Api,
    /// Whether `metalform serve` answers.
    PackageService,
    /// Whether the authorities, and what they issued for this machine, are there.
    Trust,
    /// Whether the registry holds every image of the bundle.
    Images,
    /// Whether the cluster has the objects that every cluster has.
    ClusterObjects,
    /// Proxies on other nodes that do not know every API server.
    Proxies,
    /// Tokens for the kubelet's first certificate.
    JoinTokens,
    /// Whether a pod on the node answers from another one.
    Reach,
}

impl Look {
    /// For people, after "look at".
    pub fn title(&self) -> String {
        match self {
            Self::Facts => "the host".to_owned(),
            Self::Survey => "what is on the host".to_owned(),
            Self::Plan(layer) => format!("what would change for the {}", layer.title()),
            Self::Node => "the Node".to_owned(),
            Self::Peers => "the other nodes".to_owned(),
            Self::Membership => "etcd's members".to_owned(),
            Self::Pods => "the node's pods".to_owned(),
            Self::Api => "the API".to_owned(),
            Self::PackageService => "metalform serve".to_owned(),
            Self::Trust => "the authorities".to_owned(),
            Self::Images => "the registry's images".to_owned(),
            Self::ClusterObjects => "the objects that every cluster has".to_owned(),
            Self::Proxies => "the API server proxies".to_owned(),
            Self::JoinTokens => "the node's join tokens".to_owned(),
            Self::Reach => "the reachability of pods".to_owned(),
        }
    }
}

/// Something to do. It carries what it needs; whoever does it decides nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Make the host what these states say, as last planned.
    Apply(Layer),
    /// Make a token with which the kubelet may ask for its first certificate.
    CreateJoinToken,
    /// Take that token back.
    DeleteJoinToken,
    /// Hold the Lease that serialises changes of etcd's membership.
    TakeLease,
    /// Let go of it.
    ReleaseLease,
    /// Change etcd's membership.
    ChangeMembership(Change),
    /// Put data of a removed member out of the way of a new one.
    SetAsideMemberData,
    /// Record on the Node what it is reached by.
    Annotate(Vec<(String, String)>),
    /// Make the authorities that are missing, and issue what this machine lacks.
    CreateTrust,
    /// Load the bundle's images into the registry.
    LoadImages,
    /// Create or update the objects that every cluster has.
    ApplyClusterObjects,
    /// Create or update the bootstrap node's own Node object.
    RegisterNode,
    /// Restart the kubelet, which would ask again only after its back-off.
    RestartKubelet,
    /// Bring the proxies of these nodes up to date.
    UpdateProxies(Vec<String>),
    /// Start a pod on the node that answers over HTTP.
    StartReachabilityPod,
    /// Remove that pod.
    DeleteReachabilityPod,
}

impl Action {
    /// For people: `add a learner to etcd`.
    pub fn sentence(&self) -> String {
        match self {
            Self::Apply(layer) => format!("apply {}", layer.title()),
            Self::CreateJoinToken => "create a join token".to_owned(),
            Self::DeleteJoinToken => "take the join token back".to_owned(),
            Self::TakeLease => "take the lease on etcd's membership".to_owned(),
            Self::ReleaseLease => "release the lease on etcd's membership".to_owned(),
            Self::ChangeMembership(Change::AddLearner { peer_url }) => {
                format!("add {peer_url} to etcd as a learner")
            }
            Self::ChangeMembership(Change::Promote { id }) => format!("promote etcd learner {id:x} to voter"),
            Self::ChangeMembership(Change::Remove { id, why }) => {
                format!("remove etcd member {id:x}: it {why}")
            }
            Self::SetAsideMemberData => "set aside the data of a removed etcd member".to_owned(),
            Self::Annotate(_) => "record the node's addresses".to_owned(),
            Self::CreateTrust => "make the cluster's authorities".to_owned(),
            Self::LoadImages => "load images into the registry".to_owned(),
            Self::ApplyClusterObjects => "apply access rules and CoreDNS".to_owned(),
            Self::RegisterNode => "create the Node object".to_owned(),
            Self::RestartKubelet => "restart the kubelet".to_owned(),
            Self::UpdateProxies(nodes) => format!("update the API server proxies of {}", nodes.join(", ")),
            Self::StartReachabilityPod => "start a pod on the node".to_owned(),
            Self::DeleteReachabilityPod => "remove that pod".to_owned(),
        }
    }

    /// Whether anything is left of it when the run has ended. Tokens, the lease and the pod for the proof are
    /// taken back by the run that made them.
    pub fn lasts(&self) -> bool {
        !matches!(
            self,
            Self::CreateJoinToken
                | Self::DeleteJoinToken
                | Self::TakeLease
                | Self::ReleaseLease
                | Self::StartReachabilityPod
                | Self::DeleteReachabilityPod
        )
    }

    /// What was seen before and may no longer be so.
    pub fn disturbs(&self) -> Vec<Look> {
        match self {
            Self::Apply(layer) => {
                vec![Look::Plan(layer.clone()), Look::Survey, Look::Api, Look::PackageService, Look::Pods]
            }
            Self::CreateJoinToken | Self::DeleteJoinToken => {
                vec![Look::JoinTokens, Look::Plan(Layer::Base), Look::Plan(Layer::Joined)]
            }
            Self::TakeLease | Self::ReleaseLease | Self::ChangeMembership(_) => vec![Look::Membership],
            Self::SetAsideMemberData => vec![Look::Survey, Look::Pods],
            Self::Annotate(_) | Self::RegisterNode => vec![Look::Node, Look::Peers],
            Self::CreateTrust => vec![Look::Trust],
            Self::LoadImages => vec![Look::Images],
            Self::ApplyClusterObjects => vec![Look::ClusterObjects],
            Self::RestartKubelet => vec![Look::Survey],
            Self::UpdateProxies(_) => vec![Look::Proxies],
            // The proof begins: what was seen on the way to it may be minutes old.
            Self::StartReachabilityPod => vec![Look::Reach, Look::Node, Look::Pods, Look::Membership],
            Self::DeleteReachabilityPod => vec![Look::Reach],
        }
    }
}

/// Something to wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// A sentence: `node-1 to be Ready`. Two waits with the same sentence are the same wait.
    pub sentence: String,
    /// What was last seen instead.
    pub last_seen: String,
    /// How long it may take in all.
    pub limit: Duration,
    /// What to look at again.
    pub looks: Vec<Look>,
}

/// Why a phase can never hold without a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocker {
    /// The host is not fit for it, for all these reasons.
    Preflight(Vec<Failure>),
    /// A resource refuses to be changed: id and reason.
    Refused(Vec<(String, String)>),
    /// Resources that this run has changed, and that differ again: their ids.
    StillDiffers(Vec<String>),
    /// etcd's membership stands in the way.
    Etcd(Obstacle),
    /// Our learner was taken out again, and why.
    LearnerRemoved(String),
}

/// Takes a part of the world, or asks for it.
#[macro_export]
macro_rules! seen {
    ($part:expr, $look:expr) => {
        match &$part {
            Some(part) => part,
            None => return $crate::operation::phase::Next::Look($look),
        }
    };
}
