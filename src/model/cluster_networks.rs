//! The networks of a cluster.

use std::net::IpAddr;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::Serialize;

/// Networks that were validated: each is a network (no host bits), and they do not overlap, except that the
/// two planes may be the same networks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Networks {
    /// Where API servers, etcd members and kubelets talk; never empty.
    #[schemars(with = "Vec<String>")]
    pub control_plane: Vec<IpNet>,
    /// Where pods of different nodes talk.
    pub workload_plane: WorkloadPlane,
    /// Pods' addresses; each node gets a part of it.
    #[schemars(with = "String")]
    pub pods: IpNet,
    /// Services' virtual addresses.
    #[schemars(with = "String")]
    pub services: IpNet,
    /// Of the Service `kubernetes`: the first address of `services`, which the API server takes by itself.
    pub api_service_ip: IpAddr,
    /// Of the cluster's DNS: the tenth address of `services`, as kubeadm and MetalK8s have it.
    pub dns_ip: IpAddr,
}

/// The plane of the workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WorkloadPlane {
    /// Never empty.
    #[schemars(with = "Vec<String>")]
    pub cidrs: Vec<IpNet>,
    /// Octets; the smallest of all hosts' interfaces in this plane.
    pub mtu: u32,
}

/// The network's address plus `n`. The network must be large enough.
pub fn nth_address(network: IpNet, n: u8) -> IpAddr {
    match network.network() {
        IpAddr::V4(first) => IpAddr::V4((u32::from(first) + u32::from(n)).into()),
        IpAddr::V6(first) => IpAddr::V6((u128::from(first) + u128::from(n)).into()),
    }
}

/// Whether any address is in both.
pub fn overlap(one: IpNet, other: IpNet) -> bool {
    one.contains(&other) || other.contains(&one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_overlap_when_one_holds_the_other() {
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
    fn addresses_are_counted_from_the_networks_own() {
        assert_eq!(nth_address("10.96.0.0/12".parse().unwrap(), 10).to_string(), "10.96.0.10");
        assert_eq!(nth_address("fd00::/112".parse().unwrap(), 1).to_string(), "fd00::1");
    }
}
