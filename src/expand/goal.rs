//! What an expansion is for: one node, of one cluster.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::model::facts::Facts;
use crate::model::name::HostName;
use crate::model::node::Role;

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
    /// Networks of the control plane.
    pub control_plane: Vec<String>,
    /// Networks of the workload plane.
    pub workload_plane: Vec<String>,
    /// The pods' network.
    pub pods: String,
    /// The services' network.
    pub services: String,
    /// Operating systems in the bundle: `debian 13` → codename `trixie`.
    pub codenames: BTreeSet<String>,
    /// Architectures in the bundle.
    pub architectures: BTreeSet<String>,
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

    /// Static pods that its roles bring, by name.
    pub fn static_pods(&self) -> Vec<&'static str> {
        let mut pods = Vec::new();
        if self.has(Role::Etcd) {
            pods.push("etcd");
        }
        if self.has(Role::Master) {
            pods.extend(["kube-apiserver", "kube-controller-manager", "kube-scheduler"]);
        }
        pods
    }
}

/// The host's interface and address in one of these networks: the first, in the order of the interfaces' names.
pub fn address_in(facts: &Facts, networks: &[String]) -> Option<(String, IpAddr)> {
    facts.addresses.iter().find_map(|(interface, addresses)| {
        addresses
            .iter()
            .find(|cidr| networks.iter().any(|network| contains(network, cidr.address)))
            .map(|cidr| (interface.clone(), cidr.address))
    })
}

/// Whether a network in CIDR form holds an address. A text that is no network holds none.
pub fn contains(network: &str, address: IpAddr) -> bool {
    let Some((base, prefix)) = network.split_once('/') else { return false };
    let (Ok(base), Ok(prefix)) = (base.parse::<IpAddr>(), prefix.parse::<u32>()) else { return false };
    match (base, address) {
        (IpAddr::V4(base), IpAddr::V4(address)) if prefix <= 32 => {
            let mask = u32::MAX.checked_shl(32 - prefix).unwrap_or(0);
            u32::from(base) & mask == u32::from(address) & mask
        }
        (IpAddr::V6(base), IpAddr::V6(address)) if prefix <= 128 => {
            let mask = u128::MAX.checked_shl(128 - prefix).unwrap_or(0);
            u128::from(base) & mask == u128::from(address) & mask
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_holds_its_addresses_and_no_other() {
        for (network, address, holds) in [
            ("10.100.0.0/24", "10.100.0.255", true),
            ("10.100.0.0/24", "10.100.1.0", false),
            ("0.0.0.0/0", "192.0.2.1", true),
            ("192.0.2.1/32", "192.0.2.1", true),
            ("10.100.0.0/24", "2001:db8::1", false),
            ("2001:db8::/32", "2001:db8:1::1", true),
            ("nonsense", "192.0.2.1", false),
        ] {
            assert_eq!(contains(network, address.parse().unwrap()), holds, "{network} {address}");
        }
    }
}
