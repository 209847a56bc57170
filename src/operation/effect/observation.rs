//! What looks find.

use std::collections::{BTreeMap, BTreeSet};

use crate::etcd::member::Membership;
use crate::kube_api::eviction::DrainPod;
use crate::kube_api::pods::ExpectedPod;
use crate::model::facts::Facts;
use crate::operation::host_reset::inventory::HostDifference;
use crate::operation::layer::Layer;
use crate::operation::observed::etcd_servers::EtcdServers;
use crate::operation::observed::layer_plan::LayerPlan;
use crate::operation::observed::lease::LeaseView;
use crate::operation::observed::node::{NodeView, Peer, Reachability};
use crate::operation::observed::proxy::ProxyView;
use crate::operation::observed::report::{ContainerReport, UnitReport};
use crate::operation::survey::Survey;

/// What a look found.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "each is the result of the look of the same name")]
pub enum Observation {
    /// With this machine's clock when they were received, in seconds since the epoch.
    Facts(Facts, i64),
    Survey(Survey),
    Plan(Layer, LayerPlan),
    Unit(String, UnitReport),
    Container(String, ContainerReport),
    HostDifferences(Vec<HostDifference>),
    /// `None`: there is no Node object.
    Node(Option<NodeView>),
    Peers(BTreeMap<String, Peer>),
    /// One line for each pod that is not ready.
    Pods(Vec<ExpectedPod>, Vec<String>),
    PodsToDrain(Vec<DrainPod>),
    /// Why each is not ready, by node name.
    ApiServers(BTreeMap<String, Option<String>>),
    /// How many.
    JoinTokens(usize),
    Reachability(Reachability),
    /// Whether it answers, and no pod is left.
    PodGateway(bool),
    Membership(Membership),
    /// `None`: it does not run, or has no quorum.
    OwnMember(Option<Membership>),
    Lease(LeaseView),
    /// Why it is not ready.
    Api(Option<String>),
    Proxy(String, ProxyView),
    EtcdServers(String, EtcdServers),
    Trust(BTreeSet<String>),
    NewClusterMark(bool),
    /// Why it does not accept connections.
    PackageService(Option<String>),
    /// Why it does not accept connections.
    Registry(Option<String>),
    Images(BTreeSet<String>),
    Objects(BTreeSet<String>),
}
