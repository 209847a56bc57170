//! A Machine: a node that shall exist.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::drain_timeout::{DrainTimeout, DrainTimeoutError};
use super::machine_metadata::MachineNodeMetadata;
use super::machine_status::MachineStatus;
use super::provider_spec::ProviderSpec;
use super::version::MachineVersions;
use super::{rules, schema};
use crate::model::node::Taint;

/// A node that shall exist: a claim of a Host, which is deployed for as long as the Machine exists. It never changes;
/// to replace the node, delete the Machine.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.k8s.io",
    version = "v1alpha1",
    kind = "Machine",
    namespaced,
    doc = "A node that shall exist. Deleting it drains the node and returns its Host to the pool.",
    derive = "PartialEq",
    status = "MachineStatus",
    shortname = "ma",
    category = "metalform",
    validation = kube::core::Rule::new(rules::machine_is_immutable())
        .message("a Machine is immutable; delete it to replace its node").field_path(".spec"),
    validation = kube::core::Rule::new(rules::provider_id_is_set_once())
        .message("providerID is set once").field_path(".spec.providerID"),
    printcolumn(name = "Node", type_ = "string", json_path = ".status.nodeRef.name"),
    printcolumn(name = "Host", type_ = "string", json_path = ".status.host"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Version", type_ = "string", json_path = ".spec.versions.kubelet"),
    printcolumn(name = "ProviderID", type_ = "string", json_path = ".spec.providerID", priority = 1),
    printcolumn(
        name = "Internal-IP",
        type_ = "string",
        json_path = ".status.addresses[?(@.type==\"InternalIP\")].address",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
pub struct MachineSpec {
    /// Labels and annotations of the Node.
    #[serde(default, skip_serializing_if = "MachineNodeMetadata::is_empty")]
    pub metadata: MachineNodeMetadata,
    /// Taints of the Node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::taints")]
    pub taints: Vec<Taint>,
    /// The Hosts that it may claim, and how a Host is deployed.
    pub provider_spec: ProviderSpec,
    /// Versions of Kubernetes.
    pub versions: MachineVersions,
    /// Set by metalform: `metalform://HOST/UID`.
    #[serde(rename = "providerID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 512))]
    pub provider_id: Option<String>,
    /// How long the node may take to drain before its pods are deleted without regard to their disruption budgets, such
    /// as 2h; 0 is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 32), extend("x-kubernetes-validations" = rules::duration()))]
    pub node_drain_timeout: Option<String>,
}

impl MachineSpec {
    /// How long the node may take to drain; `None` is the controller's default.
    ///
    /// # Errors
    /// When it is not a duration.
    pub fn node_drain_timeout(&self) -> Result<Option<DrainTimeout>, DrainTimeoutError> {
        self.node_drain_timeout.as_deref().map(DrainTimeout::parse).transpose()
    }
}
