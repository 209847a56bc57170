//! The cluster as templates and state files see it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::cluster_networks::Networks;

/// Where the bootstrap node serves packages and images, with TLS.
pub const SERVE_PORT: u16 = 8443;

/// The `cluster` of templates and state files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Cluster {
    /// What kubeconfigs call it.
    pub name: String,
    /// Its networks.
    pub networks: Networks,
    /// Component to version: `kubernetes` to `1.35.4`.
    pub versions: BTreeMap<String, String>,
    /// Package to version, of the packages that are the bundle's own: `kubelet` to `1.35.4`.
    pub packages: BTreeMap<String, String>,
    /// Component to full image reference: `etcd` to `registry.k8s.io/etcd:3.6.5-0`.
    pub images: BTreeMap<String, String>,
    /// Settings of the Kubernetes components.
    pub kubernetes: KubernetesOptions,
    /// Where hosts get packages from.
    pub repository: Repository,
    /// Where containerd gets images from: `https://10.0.0.1:8443`.
    pub registry: String,
    /// Certificates of the authorities, PEM, by name: `kubernetes`, `etcd`, `front-proxy`.
    pub authorities: BTreeMap<String, String>,
    /// What service account tokens are checked with, PEM.
    pub service_account_public_key: String,
    /// What must never be shown.
    pub secrets: Secrets,
    /// Path of this binary on the bootstrap node.
    pub metalform: String,
}

/// What every API server shares. `Debug` shows none of it.
#[derive(Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Secrets {
    /// What service account tokens are signed with, PEM.
    pub service_account_key: String,
    /// What secrets are encrypted with at rest, base64.
    pub encryption_key: String,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets(..)")
    }
}

/// Where hosts get packages from, and how they know that it is right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Repository {
    /// `https://10.0.0.1:8443/packages`.
    pub uri: String,
    /// Public OpenPGP key that indexes are signed with, ASCII armor.
    pub key: String,
}

/// Settings of the Kubernetes components.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KubernetesOptions {
    /// Of the API server.
    pub feature_gates: BTreeMap<String, bool>,
    /// Ended pods that are kept before the oldest are removed.
    pub terminated_pod_gc_threshold: u32,
    /// Whether the cluster's DNS asks the hosts' resolvers for names that are not its own.
    pub dns_host_forward: bool,
    /// Pods that a node may run.
    pub max_pods: u32,
}

impl Default for KubernetesOptions {
    /// The defaults of MetalK8s, which are upstream's except for fewer ended pods kept.
    fn default() -> Self {
        Self {
            feature_gates: BTreeMap::new(),
            terminated_pod_gc_threshold: 500,
            dns_host_forward: true,
            max_pods: 110,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::cluster_networks::WorkloadPlane;

    #[test]
    fn templates_see_networks_and_addresses_as_text() {
        let cluster = Cluster {
            name: "metal".into(),
            networks: Networks {
                control_plane: vec!["10.0.0.0/24".parse().unwrap()],
                workload_plane: WorkloadPlane { cidrs: vec!["10.1.0.0/24".parse().unwrap()], mtu: 1460 },
                pods: "10.233.0.0/16".parse().unwrap(),
                services: "10.96.0.0/12".parse().unwrap(),
                api_service_ip: "10.96.0.1".parse().unwrap(),
                dns_ip: "10.96.0.10".parse().unwrap(),
            },
            versions: BTreeMap::from([("kubernetes".into(), "1.35.4".into())]),
            packages: BTreeMap::new(),
            images: BTreeMap::new(),
            kubernetes: KubernetesOptions::default(),
            repository: Repository { uri: "https://a".into(), key: "KEY".into() },
            registry: "https://a".into(),
            authorities: BTreeMap::new(),
            service_account_public_key: "PEM".into(),
            secrets: Secrets { service_account_key: "PEM".into(), encryption_key: "KEY".into() },
            metalform: "/usr/local/bin/metalform".into(),
        };
        let seen = serde_json::to_value(&cluster).unwrap();
        assert_eq!(seen["networks"]["control_plane"][0], "10.0.0.0/24");
        assert_eq!(seen["networks"]["workload_plane"]["mtu"], 1460);
        assert_eq!(seen["networks"]["dns_ip"], "10.96.0.10");
        assert_eq!(seen["versions"]["kubernetes"], "1.35.4");
        assert_eq!(seen["kubernetes"]["max_pods"], 110);
    }
}
