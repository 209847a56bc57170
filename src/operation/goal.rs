//! What an expansion is for: one node, of one cluster.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::kube_api::pods::ExpectedPod;
use crate::model::cluster_networks::Networks;
use crate::model::facts::Facts;
use crate::model::name::HostName;
use crate::model::platform::Platform;
use crate::model::role::Role;

/// The node that should be, and what must be known of the cluster to decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Goal {
    /// The node's name, and the host's.
    pub name: HostName,
    /// What it is for.
    pub roles: BTreeSet<Role>,
    /// Whether it is the first of its cluster.
    pub first: bool,
    /// Its address on the control plane, once facts told it (`ssh-host` where it is an address).
    pub control_plane_ip: IpAddr,
    /// The cluster's networks.
    pub networks: Networks,
    /// Platforms that the bundle has packages for.
    pub platforms: BTreeSet<Platform>,
    /// The cluster's authority, PEM; `None` before the first bootstrap made it.
    pub authority: Option<String>,
    /// Seconds since the epoch on this machine, for comparing clocks.
    pub clock: i64,
}

impl Goal {
    /// Whether the node has this role.
    pub fn has(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// Where its etcd member is reached by the others.
    pub fn peer_url(&self) -> String {
        format!("https://{}:2380", self.control_plane_ip)
    }

    /// Pods that its roles bring.
    pub fn pods(&self) -> Vec<ExpectedPod> {
        let mut pods = Vec::new();
        let fixed = |name: &str| ExpectedPod::Static(name.to_owned());
        if self.has(Role::Etcd) {
            pods.push(fixed("etcd"));
        }
        if self.has(Role::Master) {
            pods.extend(["kube-apiserver", "kube-controller-manager", "kube-scheduler"].map(fixed));
        }
        if self.has(Role::Infra) {
            pods.push(ExpectedPod::DaemonSet("coredns".to_owned()));
        }
        pods
    }
}

/// The host's interface and address in one of these networks: the first, in the order of the interfaces' names.
pub fn address_in(facts: &Facts, networks: &[IpNet]) -> Option<(String, IpAddr)> {
    facts.address_in(networks).map(|(interface, address)| (interface.to_owned(), address))
}
