//! The goal of operations on one node.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use ipnet::IpNet;

use super::foreseen_changes::ForeseenChanges;
use super::present_networks::PresentNetworks;
use crate::bundle::program_needs::ProgramNeeds;
use crate::kube_api::pods::ExpectedPod;
use crate::model::cluster_networks::Networks;
use crate::model::facts::Facts;
use crate::model::name::HostName;
use crate::model::node::{NodeManifest, NodeSpec};
use crate::model::platform::Platform;
use crate::model::role::Role;

/// The node that shall be, and what must be known of the cluster to decide. It has no address: that is a fact of
/// the host ([`NodeGoal::address`]); `ssh-host` is only for SSH.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeGoal {
    /// The name of the Node, and the host's.
    pub name: HostName,
    /// Empty only before roles are known.
    pub roles: BTreeSet<Role>,
    /// Whether it is the first of its cluster.
    pub first: bool,
    /// The cluster's networks.
    pub networks: Networks,
    /// Those that the cluster has, by the static pods of this machine.
    pub present_networks: PresentNetworks,
    /// The address on the control plane that its Node recorded before the operation began. It counts until the Node is
    /// observed: on the first node that is when its API server is ready.
    pub recorded_address: Option<IpAddr>,
    /// The address on the workload plane that its Node recorded before the operation began.
    pub recorded_workload_address: Option<IpAddr>,
    /// Platforms that the bundle has packages for.
    pub platforms: BTreeSet<Platform>,
    /// What the bundle of the control plane has: component to version.
    pub versions: BTreeMap<String, String>,
    /// The certificate of the cluster's CA, PEM; `None` before the first bootstrap creates it.
    pub authority: Option<String>,
    /// How many pods the node may run.
    pub max_pods: u32,
    /// What a host needs to run the program of the bootstrap node.
    pub program: ProgramNeeds,
    /// Whether it is removed.
    pub leaves: bool,
    /// Whether its etcd member, a voter that lost its data, may be removed and joined again.
    pub replace_member: bool,
    /// Whether the host may be another machine than the one that the Node is of.
    pub replace_machine: bool,
    /// Other nodes that the same command deploys: each looks after its own API server proxy.
    pub beside: Arc<BTreeSet<HostName>>,
    /// What a saved plan foresees; `None` where none is carried out.
    pub foreseen: Option<Arc<ForeseenChanges>>,
}

/// Why the host's address on the control plane is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The host has none.
    #[error("no address on the control plane")]
    Missing,
    /// The host has several, and none of them is recorded on the Node.
    #[error("several addresses on the control plane: {}", addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Several {
        /// In the order of the interfaces' names.
        addresses: Vec<IpAddr>,
    },
}

impl AsRef<Self> for NodeGoal {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// Where the etcd member at this address is reached by its peers.
pub fn peer_url(address: IpAddr) -> String {
    format!("https://{}", SocketAddr::new(address, 2380))
}

/// Where the etcd member at this address is reached by its clients.
pub fn client_url(address: IpAddr) -> String {
    format!("https://{}", SocketAddr::new(address, 2379))
}

/// Where the etcd members of these Nodes are reached by their clients, of those that were deployed.
pub fn member_urls(manifests: &[NodeManifest]) -> Vec<String> {
    let specs = manifests.iter().filter_map(|manifest| NodeSpec::parse(manifest).ok());
    let members = specs.filter(|spec| spec.roles.contains(&Role::Etcd));
    members.filter_map(|spec| spec.control_plane_ip).map(client_url).collect()
}

impl NodeGoal {
    /// Whether the node has this role.
    pub fn has(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// Whether it runs the controllers of Machines while the bootstrap node does not.
    pub fn stands_by(&self) -> bool {
        self.has(Role::Master) && !self.has(Role::Bootstrap)
    }

    /// The host's address on the control plane: the one that is recorded on its Node if the host has it, else its
    /// only one. `recorded` is what was observed of the Node.
    ///
    /// # Errors
    /// When it has none, or several and none of them is recorded.
    pub fn address(&self, facts: &Facts, recorded: Option<IpAddr>) -> Result<IpAddr, AddressError> {
        let mut addresses = addresses_in(facts, &self.networks.control_plane);
        addresses.dedup();
        match addresses[..] {
            [] => Err(AddressError::Missing),
            [only] => Ok(only),
            _ => recorded
                .or(self.recorded_address)
                .filter(|recorded| addresses.contains(recorded))
                .ok_or(AddressError::Several { addresses }),
        }
    }

    /// The host's interface and address on the workload plane: the address that was recorded on its Node if the host
    /// still has it, else the first of IPv4 in the order of the interfaces' names. BIRD finds other nodes on the
    /// interface, and the address is its router ID.
    pub fn workload_address(&self, facts: &Facts) -> Option<(String, IpAddr)> {
        let mut addresses = addresses_in(facts, &self.networks.workload_plane.cidrs);
        addresses.retain(IpAddr::is_ipv4);
        let recorded = self.recorded_workload_address.filter(|recorded| addresses.contains(recorded));
        let address = recorded.or_else(|| addresses.first().copied())?;
        Some((interface_of(facts, address)?, address))
    }

    /// The pods of its roles.
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

/// The host's addresses in these networks, in the order of the interfaces' names.
pub fn addresses_in(facts: &Facts, networks: &[IpNet]) -> Vec<IpAddr> {
    let all = facts.addresses.values().flatten().map(|cidr| cidr.address);
    all.filter(|address| networks.iter().any(|network| network.contains(address))).collect()
}

/// The interface that has this address.
pub fn interface_of(facts: &Facts, address: IpAddr) -> Option<String> {
    let has = |cidrs: &Vec<crate::model::facts::Cidr>| cidrs.iter().any(|cidr| cidr.address == address);
    facts.addresses.iter().find(|(_, cidrs)| has(cidrs)).map(|(interface, _)| interface.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::facts::Cidr;

    #[test]
    fn of_several_addresses_on_the_control_plane_the_recorded_one_counts() {
        let goal = NodeGoal {
            name: "n".parse().unwrap(),
            roles: BTreeSet::new(),
            first: false,
            networks: Networks {
                control_plane: vec!["192.0.2.0/24".parse().unwrap()],
                ..crate::operation::tests::networks()
            },
            present_networks: PresentNetworks::default(),
            recorded_address: None,
            recorded_workload_address: None,
            platforms: BTreeSet::new(),
            versions: BTreeMap::new(),
            authority: None,
            max_pods: 110,
            program: ProgramNeeds { architecture: "amd64", c_library: None },
            replace_member: false,
            replace_machine: false,
            beside: Arc::default(),
            foreseen: None,
            leaves: false,
        };
        let mut facts = crate::engine::roster::tests::facts();
        let ip = |last: u8| IpAddr::from([192, 0, 2, last]);
        let host = |addresses: &[u8]| {
            let cidrs = addresses.iter().map(|last| Cidr { address: ip(*last), prefix: 24 }).collect();
            BTreeMap::from([("eth0".to_owned(), cidrs)])
        };
        facts.addresses = host(&[]);
        assert_eq!(goal.address(&facts, None), Err(AddressError::Missing));
        facts.addresses = host(&[1]);
        assert_eq!(goal.address(&facts, Some(ip(9))), Ok(ip(1)));
        facts.addresses = host(&[1, 2]);
        assert_eq!(goal.address(&facts, Some(ip(2))), Ok(ip(2)));
        for recorded in [None, Some(ip(9))] {
            let several = AddressError::Several { addresses: vec![ip(1), ip(2)] };
            assert_eq!(goal.address(&facts, recorded), Err(several));
        }
        // Before the Node was observed, and after.
        let goal = NodeGoal { recorded_address: Some(ip(2)), ..goal };
        assert_eq!(goal.address(&facts, None), Ok(ip(2)));
        assert_eq!(goal.address(&facts, Some(ip(1))), Ok(ip(1)));
        assert_eq!(peer_url("2001:db8::1".parse().unwrap()), "https://[2001:db8::1]:2380");
    }

    #[test]
    fn of_several_addresses_on_the_workload_plane_the_recorded_one_counts_and_else_the_first() {
        let mut goal = crate::operation::tests::goal([]);
        goal.networks.workload_plane.cidrs =
            vec!["198.51.100.0/24".parse().unwrap(), "2001:db8::/64".parse().unwrap()];
        let mut facts = crate::engine::roster::tests::facts();
        let other = ("eth0", "192.0.2.7");
        let (first, second) = (("br0", "198.51.100.100"), ("eth1", "198.51.100.7"));
        for (addresses, recorded, expected) in [
            (&[other][..], None, None),
            (&[other], Some("192.0.2.7"), None),
            (&[other, second], None, Some(second)),
            (&[first, second], None, Some(first)),
            (&[first, second], Some("198.51.100.7"), Some(second)),
            (&[first, second], Some("198.51.100.9"), Some(first)),
            (&[("br0", "2001:db8::7"), second], None, Some(second)),
        ] {
            let cidr = |address: &str| Cidr { address: address.parse().unwrap(), prefix: 24 };
            let interfaces = addresses.iter().map(|&(name, address)| (name.to_owned(), vec![cidr(address)]));
            facts.addresses = interfaces.collect();
            goal.recorded_workload_address = recorded.map(|address: &str| address.parse().unwrap());
            let expected = expected
                .map(|(name, address): (&str, &str)| (name.to_owned(), address.parse::<IpAddr>().unwrap()));
            assert_eq!(goal.workload_address(&facts), expected, "{addresses:?} {recorded:?}");
        }
    }
}
