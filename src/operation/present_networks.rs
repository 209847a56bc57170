//! The networks that a cluster has. Each pod, each Service and each API server's certificate has addresses of them: they are
//! chosen before the cluster exists, and nothing changes them later.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;

use super::static_pod::flags;
use crate::model::cluster_networks::Networks;

/// As the static pods of one host have them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PresentNetworks {
    /// Of the controller manager: one for each IP version; empty where it is not on the host.
    pub pods: BTreeSet<IpNet>,
    /// Of the API server: one for each IP version; empty where it is not on the host.
    pub services: BTreeSet<IpNet>,
}

/// A network that the configuration has, and the cluster has otherwise.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangedNetwork {
    /// By a static pod.
    #[error("networks.{field} is {configured}, but this cluster has {present}, which cannot be changed")]
    Range {
        /// `pods` or `services`.
        field: &'static str,
        /// In the configuration.
        configured: IpNet,
        /// Those of the cluster, separated by commas.
        present: String,
    },
    /// By a Node.
    #[error(
        "networks.pods is {configured}, but the Node has the pod network {present}, which cannot be changed"
    )]
    PodsOfNode {
        /// In the configuration.
        configured: IpNet,
        /// Of the Node.
        present: IpNet,
    },
    /// By the Service of the API.
    #[error(
        "networks.services is {configured}, but the Service kubernetes has the address {present}, which cannot be changed"
    )]
    ApiService {
        /// In the configuration.
        configured: IpNet,
        /// Of the Service.
        present: IpAddr,
    },
}

impl ChangedNetwork {
    /// What to do about it.
    pub fn hint(&self) -> String {
        let field = match self {
            Self::Range { field, .. } => *field,
            Self::PodsOfNode { .. } => "pods",
            Self::ApiService { .. } => "services",
        };
        format!("restore networks.{field} in /etc/metalform/bootstrap.yaml")
    }

    /// Where a Node was assigned a pod network that is not of the configured one.
    pub fn of_node(configured: &Networks, pod_cidr: &str) -> Option<Self> {
        let configured = configured.pods;
        let present: IpNet = pod_cidr.parse().ok()?;
        (!configured.contains(&present)).then_some(Self::PodsOfNode { configured, present })
    }

    /// Where the Service `kubernetes` has another address than the first of the configured network.
    pub fn of_api_service(configured: &Networks, address: &str) -> Option<Self> {
        let present: IpAddr = address.parse().ok()?;
        let changed = Self::ApiService { configured: configured.services, present };
        (present != configured.api_service_ip).then_some(changed)
    }
}

impl PresentNetworks {
    /// By the manifests of the API server and of the controller manager, where they exist.
    pub fn of(api_server: Option<&str>, controller_manager: Option<&str>) -> Self {
        Self {
            pods: networks(controller_manager, "cluster-cidr"),
            services: networks(api_server, "service-cluster-ip-range"),
        }
    }

    /// What the configuration has otherwise.
    pub fn changes(&self, configured: &Networks) -> Vec<ChangedNetwork> {
        let pairs =
            [("pods", configured.pods, &self.pods), ("services", configured.services, &self.services)];
        pairs
            .into_iter()
            .filter(|(_, configured, present)| !present.is_empty() && !present.contains(configured))
            .map(|(field, configured, present)| {
                let present = present.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
                ChangedNetwork::Range { field, configured, present }
            })
            .collect()
    }
}

/// Those of a flag, which lists one for each IP version.
fn networks(manifest: Option<&str>, flag: &str) -> BTreeSet<IpNet> {
    let value = manifest.and_then(|manifest| flags(manifest).remove(flag)).unwrap_or_default();
    value.split(',').filter_map(|network| network.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_from_the_static_pods_and_compared_with_the_configuration() {
        let configured = crate::operation::tests::networks();
        for (api_server, controller_manager, expected) in [
            (None, None, vec![]),
            (Some("containers: []"), Some("- --cluster-cidr=none"), vec![]),
            (
                Some("  - --service-cluster-ip-range=10.96.0.0/12\n"),
                Some("  - --cluster-cidr=10.233.0.0/16\n  - --service-cluster-ip-range=10.112.0.0/12\n"),
                vec![],
            ),
            (None, Some("- --cluster-cidr=10.233.0.0/16,fd00::/56"), vec![]),
            (
                Some("- --service-cluster-ip-range=10.112.0.0/12"),
                Some("- --cluster-cidr=10.232.0.0/15,fd00::/56"),
                vec![
                    "networks.pods is 10.233.0.0/16, but this cluster has 10.232.0.0/15,fd00::/56, which cannot be changed",
                    "networks.services is 10.96.0.0/12, but this cluster has 10.112.0.0/12, which cannot be changed",
                ],
            ),
        ] {
            let found = PresentNetworks::of(api_server, controller_manager).changes(&configured);
            assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_node_and_the_service_of_the_api_have_addresses_of_them() {
        let configured = crate::operation::tests::networks();
        let of_node = |pod_cidr: &str| ChangedNetwork::of_node(&configured, pod_cidr);
        assert_eq!(of_node("10.233.7.0/24"), None);
        assert_eq!(of_node("<assigned by the controller manager>"), None);
        for outside in ["10.234.7.0/24", "10.0.0.0/8", "fd00::/64"] {
            let found = of_node(outside).unwrap();
            assert_eq!(found.hint(), "restore networks.pods in /etc/metalform/bootstrap.yaml");
        }
        assert_eq!(ChangedNetwork::of_api_service(&configured, "10.96.0.1"), None);
        assert_eq!(ChangedNetwork::of_api_service(&configured, "None"), None);
        let found = ChangedNetwork::of_api_service(&configured, "10.112.0.1").unwrap();
        assert_eq!(found.hint(), "restore networks.services in /etc/metalform/bootstrap.yaml");
    }
}
