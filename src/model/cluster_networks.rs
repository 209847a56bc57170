//! The networks of a cluster.

use std::net::IpAddr;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Validated networks: none has host bits set, and none overlap, except that the two planes may be the same and that
/// `node_ports` are any networks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Networks {
    /// Networks of API servers, etcd members and kubelets; never empty.
    #[schemars(with = "Vec<String>")]
    pub control_plane: Vec<IpNet>,
    /// Networks that carry the traffic between pods of different nodes.
    pub workload_plane: WorkloadPlane,
    /// Networks on whose addresses NodePorts are served; never empty.
    #[schemars(with = "Vec<String>")]
    pub node_ports: Vec<IpNet>,
    /// Pod addresses; each node is assigned a part of it.
    #[schemars(with = "String")]
    pub pods: IpNet,
    /// Service addresses.
    #[schemars(with = "String")]
    pub services: IpNet,
    /// Address of the Service `kubernetes`: the first of `services`, which the API server allocates itself.
    pub api_service_ip: IpAddr,
    /// Address of the cluster's DNS: the tenth of `services`, as with kubeadm and MetalK8s.
    pub dns_ip: IpAddr,
}

/// The workload plane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadPlane {
    /// Never empty.
    #[schemars(with = "Vec<String>")]
    pub cidrs: Vec<IpNet>,
    /// In octets; at most the MTU of every host's interface on this plane.
    pub mtu: u32,
}

impl Networks {
    /// Whether a certificate of a host may contain this address: it can be on one host alone, and be reached from
    /// others.
    pub fn may_be_of_a_host(&self, address: IpAddr) -> bool {
        // ::ffff:127.0.0.1 reaches 127.0.0.1.
        let address = address.to_canonical();
        let special = match address {
            IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        };
        let is_shared =
            special || address.is_loopback() || address.is_unspecified() || address.is_multicast();
        !is_shared && !self.services.contains(&address) && !self.pods.contains(&address)
    }
}

/// The network's address plus `n`; the network must contain it.
pub fn nth_address(network: IpNet, n: u8) -> IpAddr {
    match network.network() {
        IpAddr::V4(first) => IpAddr::V4((u32::from(first) + u32::from(n)).into()),
        IpAddr::V6(first) => IpAddr::V6((u128::from(first) + u128::from(n)).into()),
    }
}

/// Whether the networks share an address.
pub fn overlap(one: IpNet, other: IpNet) -> bool {
    one.contains(&other) || other.contains(&one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_overlap_when_one_contains_the_other() {
        for (one, other, expected) in [
            ("10.0.0.0/8", "10.1.0.0/16", true),
            ("10.1.0.0/16", "10.0.0.0/8", true),
            ("10.0.0.0/24", "10.0.0.0/24", true),
            ("10.0.0.0/24", "10.0.1.0/24", false),
            ("fd00::/8", "fd00:1::/32", true),
            ("0.0.0.0/0", "::/0", false),
        ] {
            assert_eq!(overlap(one.parse().unwrap(), other.parse().unwrap()), expected, "{one} {other}");
        }
    }

    #[test]
    fn addresses_are_counted_from_the_network_address() {
        assert_eq!(nth_address("10.96.0.0/12".parse().unwrap(), 10).to_string(), "10.96.0.10");
        assert_eq!(nth_address("fd00::/112".parse().unwrap(), 1).to_string(), "fd00::1");
    }
}
