//! The root `cluster` of the values that templates and state files read.

use std::collections::BTreeMap;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cluster_networks::Networks;
use super::platform::PackageFormat;

/// HTTPS port on which the bootstrap node and the mirrors serve packages and images.
pub const SERVE_PORT: u16 = 8443;

/// The name of the bootstrap node and of all mirrors in `/etc/hosts` of every host, and in their certificates. The domain is
/// reserved for private use (ICANN, resolution 2024.07.29.06).
pub const MIRROR_NAME: &str = "mirror.metalform.internal";

/// HTTPS port of the bootstrap node and of masters with the metrics of the machine controllers.
pub const MACHINE_METRICS_PORT: u16 = 8444;

/// HTTPS port of the bootstrap node that accepts pushes of images.
pub const PUSH_PORT: u16 = 8445;

/// The root `cluster`. On a roster, the `vars` of `defaults` are the root, in the same shape.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Cluster {
    /// Its name in kubeconfigs.
    pub name: String,
    /// The cluster's networks.
    pub networks: Networks,
    /// Component to version: `kubernetes` to `1.35.4`.
    pub versions: BTreeMap<String, String>,
    /// Package to version, of the packages in the bundle for this host's platform: `kubelet` to `1.35.4`.
    pub packages: BTreeMap<String, String>,
    /// Component to full image reference: `etcd` to `registry.k8s.io/etcd:3.6.5-0@sha256:...`.
    pub images: BTreeMap<String, String>,
    /// Settings of the Kubernetes components.
    pub kubernetes: KubernetesOptions,
    /// The snapshots of etcd that a timer takes.
    pub etcd_snapshots: EtcdSnapshotOptions,
    /// The only package repository of the hosts.
    pub repository: Repository,
    /// URI of the only image registry of the hosts: `https://mirror.metalform.internal:8443`.
    pub registry: String,
    /// Where packages and images are served: by the bootstrap node, and by copies of it.
    pub mirrors: Mirrors,
    /// CA name (`kubernetes`, `etcd`, `front-proxy`) to certificate, PEM.
    pub authorities: BTreeMap<String, String>,
    /// Public key that verifies service account tokens, PEM.
    pub service_account_public_key: String,
    /// Never shown in a log, an error or a diff.
    pub secrets: Secrets,
    /// Path of the metalform binary on the bootstrap node.
    pub metalform: String,
    /// The bundles that the bootstrap node serves.
    pub bundles: Vec<ClusterBundle>,
    /// What the controllers of Machines on a master have of the bootstrap node's files: a JSON document, with the routing key
    /// in it. Empty for a node that does not run them.
    pub record: String,
}

/// A bundle that the bootstrap node serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ClusterBundle {
    /// Its version of Kubernetes: `1.35.4`.
    pub kubernetes: String,
    /// Its path on the bootstrap node.
    pub directory: String,
    /// Digest of everything that determines its content.
    pub inputs: String,
}

/// Secrets shared by all API servers, and by all nodes. `Debug` shows none of them.
#[derive(Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Secrets {
    /// Private key that signs service account tokens, PEM.
    pub service_account_key: String,
    /// Key that encrypts Secrets at rest, base64.
    pub encryption_key: String,
    /// Key that authenticates routing messages between nodes, hexadecimal digits.
    pub routing_key: String,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets(..)")
    }
}

/// The servers of packages and images.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Mirrors {
    /// The name of all of them: `mirror.metalform.internal`.
    pub name: String,
    /// Address of the bootstrap node.
    pub address: IpAddr,
    /// URI of the bootstrap node, which the mirrors copy: `https://10.0.0.1:8443`.
    pub origin: String,
    /// Digest of the metalform binary on the bootstrap node, which mirrors and masters run too; zeros for any other node.
    pub metalform_sha256: String,
}

/// A package repository for the platform of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Repository {
    /// Selects the package manager that reads it.
    pub format: PackageFormat,
    /// `https://mirror.metalform.internal:8443/bundles/1.35.4/apt`.
    pub uri: String,
    /// Suite below the URI that has the packages for the host's platform: `debian-13`. Empty with `rpm`.
    pub suite: String,
    /// Public OpenPGP key of the index signatures, ASCII armor; then those of packages that are signed.
    pub key: String,
    /// Whether each package is signed, with `rpm`.
    pub signed_packages: bool,
}

/// Settings of the Kubernetes components.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KubernetesOptions {
    /// Feature gates of the API server.
    pub feature_gates: BTreeMap<String, bool>,
    /// Number of terminated pods to keep before the oldest are deleted.
    pub terminated_pod_gc_threshold: u32,
    /// Whether the cluster's DNS forwards names outside the cluster domain to the hosts' resolvers.
    pub dns_host_forward: bool,
    /// Maximum number of pods on a node.
    pub max_pods: u32,
}

impl Default for KubernetesOptions {
    /// MetalK8s' defaults, which differ from upstream's in the number of terminated pods to keep.
    fn default() -> Self {
        Self {
            feature_gates: BTreeMap::new(),
            terminated_pod_gc_threshold: 500,
            dns_host_forward: true,
            max_pods: 110,
        }
    }
}

/// The snapshots of etcd that a timer takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EtcdSnapshotOptions {
    /// Hours from one to the next; divides a day.
    pub interval_hours: u32,
    /// Number of snapshots to keep before the oldest are removed.
    pub keep: u32,
}

impl Default for EtcdSnapshotOptions {
    /// As many as RKE2 and MetalK8s keep, taken more often: they are a day and more.
    fn default() -> Self {
        Self { interval_hours: 6, keep: 5 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::cluster_networks::WorkloadPlane;

    #[test]
    fn networks_and_addresses_are_strings() {
        let cluster = Cluster {
            name: "metal".into(),
            networks: Networks {
                control_plane: vec!["10.0.0.0/24".parse().unwrap()],
                workload_plane: WorkloadPlane { cidrs: vec!["10.1.0.0/24".parse().unwrap()], mtu: 1460 },
                node_ports: vec!["10.1.0.0/24".parse().unwrap()],
                pods: "10.233.0.0/16".parse().unwrap(),
                services: "10.96.0.0/12".parse().unwrap(),
                api_service_ip: "10.96.0.1".parse().unwrap(),
                dns_ip: "10.96.0.10".parse().unwrap(),
            },
            versions: BTreeMap::from([("kubernetes".into(), "1.35.4".into())]),
            packages: BTreeMap::new(),
            images: BTreeMap::new(),
            kubernetes: KubernetesOptions::default(),
            etcd_snapshots: EtcdSnapshotOptions::default(),
            repository: Repository {
                format: PackageFormat::Deb,
                uri: "https://a".into(),
                suite: "debian-13".into(),
                key: "KEY".into(),
                signed_packages: false,
            },
            registry: "https://a".into(),
            mirrors: Mirrors {
                name: MIRROR_NAME.into(),
                address: "192.0.2.1".parse().unwrap(),
                origin: "https://b".into(),
                metalform_sha256: String::new(),
            },
            authorities: BTreeMap::new(),
            service_account_public_key: "PEM".into(),
            secrets: Secrets {
                service_account_key: "PEM".into(),
                encryption_key: "KEY".into(),
                routing_key: "KEY".into(),
            },
            metalform: "/usr/local/bin/metalform".into(),
            bundles: Vec::new(),
            record: String::new(),
        };
        let seen = serde_json::to_value(&cluster).unwrap();
        assert_eq!(seen["networks"]["control_plane"][0], "10.0.0.0/24");
        assert_eq!(seen["networks"]["workload_plane"]["mtu"], 1460);
        assert_eq!(seen["networks"]["dns_ip"], "10.96.0.10");
        assert_eq!(seen["repository"]["format"], "deb");
        assert_eq!(seen["versions"]["kubernetes"], "1.35.4");
        assert_eq!(seen["kubernetes"]["max_pods"], 110);
    }
}
