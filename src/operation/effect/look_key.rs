//! Parts of the world by name.

use serde::{Deserialize, Serialize};

use crate::operation::layer::Layer;

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
    HostDifferences,
    Node,
    Peers,
    Pods,
    PodsToDrain,
    ApiServers,
    JoinTokens,
    Reachability,
    PodGateway,
    Membership,
    OwnMember,
    Lease,
    Api,
    Proxy(String),
    /// Those of all other nodes.
    Proxies,
    EtcdServers(String),
    /// Those of all other nodes.
    AllEtcdServers,
    Trust,
    NewClusterMark,
    PackageService,
    Registry,
    Images,
    Objects,
}

impl LookKey {
    /// Whether what this names includes the other.
    pub fn includes(&self, other: &Self) -> bool {
        let part = (self, other);
        let is_part = matches!(
            part,
            (Self::PendingPlans, Self::Plan(_))
                | (Self::Proxies, Self::Proxy(_))
                | (Self::AllEtcdServers, Self::EtcdServers(_))
        );
        self == other || is_part
    }
}
