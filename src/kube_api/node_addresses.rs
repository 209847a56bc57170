//! The addresses of a Node's status.
//!
//! A kubelet with `--cloud-provider=external` leaves `status.addresses` alone once they are set
//! (pkg/kubelet/nodestatus/setters.go, `NodeAddress`), requests its serving certificate for them, and otherwise
//! reports `--node-ip` and the host name. So they are set before the kubelet first registers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use k8s_openapi::api::core::v1::NodeAddress;

use crate::model::api_contract::{ADDRESSES, CONTROL_PLANE_IP, RECORDED_ADDRESSES, WORKLOAD_PLANE_IP};
use crate::model::cluster_networks::Networks;
use crate::model::facts::Facts;
use crate::model::name::HostName;

/// The addresses to report: of the `planes`, that on the control plane first, where the API server finds the kubelet,
/// then every other address on which NodePorts are served, and the name.
///
/// Order matters: clients of the API take the first `InternalIP`.
pub fn node_addresses(
    name: &HostName,
    planes: [IpAddr; 2],
    facts: &Facts,
    networks: &Networks,
) -> Vec<NodeAddress> {
    let serves_node_ports = |address: &IpAddr| {
        // The bridge of the pod network, loopback and link-local addresses are on every node.
        networks.may_be_of_a_host(*address)
            && networks.node_ports.iter().any(|network| network.contains(address))
    };
    let others = facts.addresses.values().flatten().map(|cidr| cidr.address).filter(serves_node_ports);
    let mut internal: Vec<IpAddr> = Vec::new();
    for address in planes.into_iter().chain(others) {
        if !internal.contains(&address) {
            internal.push(address);
        }
    }
    let internal = internal.into_iter().map(|ip| ("InternalIP", ip.to_string()));
    let all = internal.chain([("Hostname", name.to_string())]);
    all.map(|(type_, address)| NodeAddress { type_: type_.to_owned(), address }).collect()
}

/// The annotations that record a node's addresses; `status` is what [`node_addresses`] returned.
pub fn address_annotations(
    control_plane: IpAddr,
    workload_plane: IpAddr,
    status: &[NodeAddress],
) -> BTreeMap<String, String> {
    let internal = status.iter().filter(|address| address.type_ == "InternalIP");
    let all: Vec<&str> = internal.map(|address| address.address.as_str()).collect();
    BTreeMap::from([
        (CONTROL_PLANE_IP.to_owned(), control_plane.to_string()),
        (WORKLOAD_PLANE_IP.to_owned(), workload_plane.to_string()),
        (ADDRESSES.to_owned(), all.join(",")),
    ])
}

/// The addresses that metalform recorded for a node, from its annotations and from nothing else: a kubelet may write
/// `status.addresses`, and `ssh-host` need not be an address of the host.
pub fn recorded_addresses(annotations: &BTreeMap<String, String>) -> BTreeSet<IpAddr> {
    let texts = RECORDED_ADDRESSES.iter().filter_map(|key| annotations.get(*key));
    texts.flat_map(|text| text.split(',')).filter_map(|text| text.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::cluster_networks::WorkloadPlane;
    use crate::model::facts::Cidr;

    #[test]
    fn the_control_plane_is_first_and_every_node_port_address_is_listed() {
        let networks = |node_ports: &[&str]| Networks {
            control_plane: vec!["192.0.2.0/24".parse().unwrap()],
            workload_plane: WorkloadPlane { cidrs: vec!["198.51.100.0/24".parse().unwrap()], mtu: 1460 },
            node_ports: node_ports.iter().map(|network| network.parse().unwrap()).collect(),
            pods: "10.233.0.0/16".parse().unwrap(),
            services: "10.96.0.0/12".parse().unwrap(),
            api_service_ip: "10.96.0.1".parse().unwrap(),
            dns_ip: "10.96.0.10".parse().unwrap(),
        };
        let listed = |workload: &str, addresses: &[&str], node_ports: &[&str]| {
            let [mut facts, _] = Facts::examples();
            let cidr = |text: &&str| Cidr { address: text.parse().unwrap(), prefix: 24 };
            let interfaces = addresses.iter().enumerate();
            facts.addresses = interfaces
                .map(|(index, text)| (format!("eth{index}"), vec![cidr(text)]))
                .collect::<BTreeMap<_, _>>();
            let addresses = node_addresses(
                &"node-1".parse().unwrap(),
                ["192.0.2.7", workload].map(|address| address.parse().unwrap()),
                &facts,
                &networks(node_ports),
            );
            addresses.iter().map(|one| format!("{}={}", one.type_, one.address)).collect::<Vec<_>>().join(" ")
        };
        let workload = ["198.51.100.0/24"];
        assert_eq!(
            listed("198.51.100.7", &["198.51.100.7", "192.0.2.7", "203.0.113.7"], &workload),
            "InternalIP=192.0.2.7 InternalIP=198.51.100.7 Hostname=node-1"
        );
        assert_eq!(
            listed(
                "192.0.2.7",
                &["192.0.2.7", "203.0.113.7", "10.233.1.1", "127.0.0.1", "169.254.0.1"],
                &["0.0.0.0/0"]
            ),
            "InternalIP=192.0.2.7 InternalIP=203.0.113.7 Hostname=node-1"
        );
        assert_eq!(listed("192.0.2.7", &["192.0.2.7"], &workload), "InternalIP=192.0.2.7 Hostname=node-1");
        assert_eq!(
            listed("198.51.100.7", &["198.51.100.1", "198.51.100.7", "192.0.2.7"], &workload),
            "InternalIP=192.0.2.7 InternalIP=198.51.100.7 InternalIP=198.51.100.1 Hostname=node-1"
        );
        assert_eq!(
            listed("192.0.2.7", &["192.0.2.1", "192.0.2.7"], &["192.0.2.0/24"]),
            "InternalIP=192.0.2.7 InternalIP=192.0.2.1 Hostname=node-1"
        );
    }
    #[test]
    fn what_is_recorded_is_read_again() {
        let address =
            |type_: &str, address: &str| NodeAddress { type_: type_.to_owned(), address: address.to_owned() };
        let status = [
            address("InternalIP", "192.0.2.7"),
            address("InternalIP", "198.51.100.7"),
            address("InternalIP", "2001:db8::7"),
            address("Hostname", "node-1"),
        ];
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let annotations = address_annotations(ip("192.0.2.7"), ip("198.51.100.7"), &status);
        assert_eq!(annotations[ADDRESSES], "192.0.2.7,198.51.100.7,2001:db8::7");
        let expected = ["192.0.2.7", "198.51.100.7", "2001:db8::7"].map(ip);
        assert_eq!(recorded_addresses(&annotations), BTreeSet::from(expected));
    }
}
