//! Looks.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::action::KeepData;
use super::look_key::LookKey;
use super::observation::Observation;
use crate::kube_api::pods::ExpectedPod;
use crate::operation::class::FailureClass;
use crate::operation::inputs::NodeInputs;
use crate::operation::layer::Layer;
use crate::operation::observed::etcd_servers::EtcdServers;
use crate::operation::observed::node::Peer;
use crate::operation::observed::proxy::ProxyView;

const SECOND: Duration = Duration::from_secs(1);

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
    /// What is not as it was before metalform changed the host; with what of the node stays.
    HostDifferences(Arc<NodeInputs>, KeepData),
    /// The Node object.
    Node,
    /// The other Node objects.
    Peers,
    /// These pods of the node.
    Pods(Vec<ExpectedPod>),
    /// The pods that must leave the node.
    PodsToDrain,
    /// Whether the API servers at these addresses are ready, by node name.
    ApiServers(BTreeMap<String, IpAddr>),
    /// The tokens for the kubelet's first certificate.
    JoinTokens,
    /// Whether the reachability pod answers.
    Reachability,
    /// Whether the gateway of the node's pods answers, which exists once a pod has run on the node, and no reachability
    /// pod of a run that was killed is left.
    PodGateway,
    /// etcd's members, asked through these client URLs; without any, through those of the Nodes that are recorded.
    Membership(Vec<String>),
    /// etcd's members, asked through the member of this machine alone.
    OwnMember,
    /// The holder of the lease on etcd membership.
    Lease,
    /// Whether the API server is ready.
    Api,
    /// Whether the proxy of this other node has every API server of these nodes, its own included.
    Proxy(String, Arc<BTreeMap<String, Peer>>),
    /// The members of etcd that the API server of this other node lists.
    EtcdServers(String),
    /// Which files of the CAs, and of what they issued to this machine, are missing.
    Trust,
    /// Whether the cluster's first etcd member has yet to begin.
    NewClusterMark,
    /// Whether `metalform serve` accepts connections.
    PackageService,
    /// Whether the registry accepts connections.
    Registry,
    /// Which images of the bundle the registry lacks.
    Images,
    /// Which of the cluster's own objects are missing or differ.
    Objects(Arc<NodeInputs>),
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
            Self::HostDifferences(..) => LookKey::HostDifferences,
            Self::Node => LookKey::Node,
            Self::Peers => LookKey::Peers,
            Self::Pods(_) => LookKey::Pods,
            Self::PodsToDrain => LookKey::PodsToDrain,
            Self::ApiServers(_) => LookKey::ApiServers,
            Self::JoinTokens => LookKey::JoinTokens,
            Self::Reachability => LookKey::Reachability,
            Self::PodGateway => LookKey::PodGateway,
            Self::Membership(_) => LookKey::Membership,
            Self::OwnMember => LookKey::OwnMember,
            Self::Lease => LookKey::Lease,
            Self::Api => LookKey::Api,
            Self::Proxy(node, _) => LookKey::Proxy(node.clone()),
            Self::EtcdServers(node) => LookKey::EtcdServers(node.clone()),
            Self::Trust => LookKey::Trust,
            Self::NewClusterMark => LookKey::NewClusterMark,
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
            Self::HostDifferences(..) => "compare the host with what it was".to_owned(),
            Self::Node => "get the Node".to_owned(),
            Self::Peers => "list the Nodes".to_owned(),
            Self::Pods(_) => "list the pods of the node".to_owned(),
            Self::PodsToDrain => "list the pods to drain".to_owned(),
            Self::ApiServers(_) => "check the other API servers".to_owned(),
            Self::JoinTokens => "list the join tokens of the node".to_owned(),
            Self::Reachability => "reach the pod on the node".to_owned(),
            Self::PodGateway => "reach the gateway of the node's pods".to_owned(),
            Self::Membership(_) => "list the etcd members".to_owned(),
            Self::OwnMember => "list the etcd members through the member of this host".to_owned(),
            Self::Lease => "get the lease on etcd membership".to_owned(),
            Self::Api => "check the API server".to_owned(),
            Self::Proxy(node, _) => format!("plan the addresses of API servers and mirrors on {node}"),
            Self::EtcdServers(node) => format!("list the etcd members that the API server of {node} uses"),
            Self::Trust => "check the CA files".to_owned(),
            Self::NewClusterMark => "check whether the cluster is new".to_owned(),
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
            Self::Survey | Self::Plan(..) | Self::HostDifferences(..) => 300 * SECOND,
            Self::Unit(_) | Self::Container(_) => 10 * SECOND,
            Self::Proxy(..) | Self::EtcdServers(_) => 60 * SECOND,
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
            | Self::HostDifferences(..)
            | Self::Proxy(..)
            | Self::EtcdServers(_) => FailureClass::Ssh,
            Self::Membership(_) | Self::OwnMember => FailureClass::Etcd,
            Self::Trust | Self::NewClusterMark => FailureClass::Configuration,
            // The connection has a limit of its own, below that of these: a program that hangs is not the end of the host.
            Self::Unit(_) | Self::Container(_) => FailureClass::Host,
            Self::PackageService | Self::Registry | Self::Images => FailureClass::Host,
            _ => FailureClass::Api,
        }
    }

    /// What is taken as observed when it fails on another host, and the operation goes on without that host.
    pub fn without_answer(&self, reason: &str) -> Option<Observation> {
        match self {
            Self::Proxy(node, _) => {
                Some(Observation::Proxy(node.clone(), ProxyView::Unreachable(reason.to_owned())))
            }
            Self::EtcdServers(node) => {
                Some(Observation::EtcdServers(node.clone(), EtcdServers::Unknown(reason.to_owned())))
            }
            _ => None,
        }
    }
}
