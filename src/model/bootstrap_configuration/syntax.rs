//! The file's form under our own apiVersion.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_saphyr::Spanned;

use crate::model::one_or_many::OneOrMany;

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct File {
    #[serde(rename = "apiVersion")]
    _api_version: String,
    #[serde(rename = "kind")]
    _kind: String,
    pub networks: Networks,
    pub ca: Option<Ca>,
    pub bundles: OneOrMany,
    #[serde(default)]
    pub kubernetes: Kubernetes,
}

impl File {
    /// The same, from another form.
    pub(super) fn new(
        networks: Networks,
        ca: Option<Ca>,
        bundles: OneOrMany,
        kubernetes: Kubernetes,
    ) -> Self {
        Self { _api_version: String::new(), _kind: String::new(), networks, ca, bundles, kubernetes }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Networks {
    pub control_plane: ControlPlane,
    pub workload_plane: WorkloadPlane,
    pub pods: Option<Spanned<String>>,
    pub services: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ControlPlane {
    pub cidr: Spanned<OneOrMany>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkloadPlane {
    pub cidr: Spanned<OneOrMany>,
    pub mtu: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ca {
    pub node: Spanned<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct Kubernetes {
    pub api_server: ApiServer,
    pub controller_manager: Component<ControllerManager>,
    #[serde(rename = "coreDNS")]
    pub core_dns: CoreDns,
    pub kubelet: Component<Kubelet>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct ApiServer {
    pub feature_gates: BTreeMap<String, bool>,
}

/// A component whose settings stand below `config`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Component<T: Default> {
    #[serde(default)]
    pub config: T,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ControllerManager {
    #[serde(rename = "terminatedPodGCThreshold")]
    pub terminated_pod_gc_threshold: Option<Spanned<u32>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct CoreDns {
    pub host_forward: Option<bool>,
    pub replicas: Option<Spanned<u32>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Kubelet {
    pub max_pods: Option<Spanned<u32>>,
}
