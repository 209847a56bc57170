//! The file's form under our own apiVersion.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_saphyr::Spanned;

use crate::model::one_or_many::OneOrMany;

/// The whole file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct File {
    #[serde(rename = "apiVersion")]
    #[schemars(extend("const" = super::API_VERSION))]
    _api_version: String,
    #[serde(rename = "kind")]
    #[schemars(extend("const" = super::KIND))]
    _kind: String,
    /// The cluster's networks.
    pub networks: Networks,
    /// Where the authorities are.
    pub ca: Option<Ca>,
    /// Directories with bundles; absolute.
    #[schemars(with = "OneOrMany")]
    pub bundles: Spanned<OneOrMany>,
    /// Settings of the Kubernetes components.
    #[serde(default)]
    pub kubernetes: Kubernetes,
}

impl File {
    /// The same, from another form.
    pub(super) fn new(
        networks: Networks,
        ca: Option<Ca>,
        bundles: Spanned<OneOrMany>,
        kubernetes: Kubernetes,
    ) -> Self {
        Self { _api_version: String::new(), _kind: String::new(), networks, ca, bundles, kubernetes }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Networks {
    /// Where API servers, etcd members and kubelets talk.
    pub control_plane: ControlPlane,
    /// Where pods of different nodes talk.
    pub workload_plane: WorkloadPlane,
    /// Pods' addresses; 10.233.0.0/16 by default.
    #[schemars(with = "Option<String>")]
    pub pods: Option<Spanned<String>>,
    /// Services' virtual addresses; 10.96.0.0/12 by default.
    #[schemars(with = "Option<String>")]
    pub services: Option<Spanned<String>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ControlPlane {
    /// One network, or several, in CIDR form.
    #[schemars(with = "OneOrMany")]
    pub cidr: Spanned<OneOrMany>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkloadPlane {
    /// One network, or several, in CIDR form.
    #[schemars(with = "OneOrMany")]
    pub cidr: Spanned<OneOrMany>,
    /// Octets; 1460 by default.
    #[schemars(with = "Option<u32>")]
    pub mtu: Option<Spanned<u32>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Ca {
    /// The node that holds the authorities; the bootstrap node by default.
    #[schemars(with = "String")]
    pub node: Spanned<String>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct Kubernetes {
    pub api_server: ApiServer,
    pub controller_manager: Component<ControllerManager>,
    #[serde(rename = "coreDNS")]
    pub core_dns: CoreDns,
    pub kubelet: Component<Kubelet>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct ApiServer {
    /// Of the API server.
    pub feature_gates: BTreeMap<String, bool>,
}

/// A component whose settings stand below `config`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Component<T: Default> {
    #[serde(default)]
    pub config: T,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ControllerManager {
    /// Ended pods that are kept; 500 by default.
    #[serde(rename = "terminatedPodGCThreshold")]
    #[schemars(with = "Option<u32>")]
    pub terminated_pod_gc_threshold: Option<Spanned<u32>>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct CoreDns {
    /// Whether the cluster's DNS asks the hosts' resolvers; true by default.
    pub host_forward: Option<bool>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Kubelet {
    /// Pods that a node may run; 110 by default.
    #[schemars(with = "Option<u32>")]
    pub max_pods: Option<Spanned<u32>>,
}
