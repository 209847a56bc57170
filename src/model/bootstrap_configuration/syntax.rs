//! The form of a file with metalform's own `apiVersion`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_saphyr::Spanned;

use crate::model::one_or_many::OneOrMany;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct File {
    #[serde(rename = "apiVersion")]
    #[schemars(extend("const" = crate::model::api_contract::API_VERSION))]
    _api_version: String,
    #[serde(rename = "kind")]
    #[schemars(extend("const" = super::KIND))]
    _kind: String,
    /// The cluster's networks.
    pub networks: Networks,
    /// The certificate authorities.
    pub ca: Option<Ca>,
    /// Directory of the bundle, or those of several, of different versions of Kubernetes; absolute. The control plane, and
    /// each node that names no version, is made of the first one.
    #[schemars(with = "OneOrMany")]
    pub bundles: Spanned<OneOrMany>,
    /// Public key of minisign that each bundle must be signed with: `RWQ...`. Without it, bundles need no signature.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub bundle_key: Option<Spanned<String>>,
    /// Settings of the Kubernetes components.
    #[serde(default)]
    pub kubernetes: Kubernetes,
    /// Settings of etcd.
    #[serde(default)]
    pub etcd: Etcd,
}

impl File {
    /// From another form.
    pub(super) fn new(
        networks: Networks,
        ca: Option<Ca>,
        bundles: Spanned<OneOrMany>,
        kubernetes: Kubernetes,
    ) -> Self {
        Self {
            _api_version: String::new(),
            _kind: String::new(),
            networks,
            ca,
            bundles,
            bundle_key: None,
            kubernetes,
            etcd: Etcd::default(),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Networks {
    /// The network of API servers, etcd members and kubelets.
    pub control_plane: ControlPlane,
    /// The network that carries the traffic between pods of different nodes.
    pub workload_plane: WorkloadPlane,
    /// Pod addresses; 10.233.0.0/16 by default.
    #[schemars(with = "Option<String>")]
    pub pods: Option<Spanned<String>>,
    /// Service addresses; 10.96.0.0/12 by default.
    #[schemars(with = "Option<String>")]
    pub services: Option<Spanned<String>>,
    /// Planes on whose addresses NodePorts are served: controlPlane, workloadPlane; workloadPlane by default.
    #[schemars(with = "Option<OneOrMany>")]
    pub node_ports: Option<Spanned<OneOrMany>>,
    /// MetalK8s' `nodeport.cidr`: the networks themselves.
    #[serde(skip)]
    pub node_port_cidr: Option<Spanned<OneOrMany>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ControlPlane {
    /// One or more networks in CIDR form.
    #[schemars(with = "OneOrMany")]
    pub cidr: Spanned<OneOrMany>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkloadPlane {
    /// One or more networks in CIDR form.
    #[schemars(with = "OneOrMany")]
    pub cidr: Spanned<OneOrMany>,
    /// In octets; 1460 by default.
    #[schemars(with = "Option<u32>")]
    pub mtu: Option<Spanned<u32>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Ca {
    /// The node that holds the CA keys; the bootstrap node by default.
    #[schemars(with = "String")]
    pub node: Spanned<String>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct Kubernetes {
    pub api_server: ApiServer,
    pub controller_manager: ComponentConfig<ControllerManager>,
    #[serde(rename = "coreDNS")]
    pub core_dns: CoreDns,
    pub kubelet: ComponentConfig<Kubelet>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct ApiServer {
    /// Feature gates of the API server.
    pub feature_gates: BTreeMap<String, bool>,
}

/// A component whose settings are below `config`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ComponentConfig<T: Default> {
    #[serde(default)]
    pub config: T,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ControllerManager {
    /// Number of terminated pods to keep; 500 by default.
    #[serde(rename = "terminatedPodGCThreshold")]
    #[schemars(with = "Option<u32>")]
    pub terminated_pod_gc_threshold: Option<Spanned<u32>>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct CoreDns {
    /// Whether the cluster's DNS forwards other names to the hosts' resolvers; true by default.
    pub host_forward: Option<bool>,
    /// Refused with a reason; see `validate`.
    #[schemars(skip)]
    pub replicas: Option<Spanned<IgnoredAny>>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Kubelet {
    /// Maximum number of pods on a node; 110 by default.
    #[schemars(with = "Option<u32>")]
    pub max_pods: Option<Spanned<u32>>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Etcd {
    /// The snapshots that a timer takes.
    pub snapshots: Snapshots,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Snapshots {
    /// Hours from one to the next: 1, 2, 3, 4, 6, 8, 12 or 24; 6 by default.
    #[schemars(with = "Option<u32>")]
    pub interval_hours: Option<Spanned<u32>>,
    /// Number of snapshots to keep on each of two nodes; 5 by default.
    #[schemars(with = "Option<u32>")]
    pub keep: Option<Spanned<u32>>,
}
