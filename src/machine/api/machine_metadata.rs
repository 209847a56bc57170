//! Metadata in a template, and of the Node that a Machine becomes.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;

/// Metadata of a Machine in a template. `kubectl get -o yaml` prints the time as `null`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineMetadata {
    /// Has no effect: a MachineSet names its Machines.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Has no effect: a MachineSet names its Machines.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub generate_name: String,
    /// Has no effect: a Machine has the namespace of its MachineSet.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Labels of the Machine and of its Node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::node_labels")]
    pub labels: BTreeMap<String, String>,
    /// Annotations of the Machine. Their values have no meaning: `kubectl.kubernetes.io/restartedAt` replaces every
    /// node because it is a change.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::annotations")]
    pub annotations: BTreeMap<String, String>,
    /// Has no effect.
    #[serde(default, skip_serializing)]
    #[schemars(schema_with = "schema::nullable_time")]
    pub creation_timestamp: Option<Time>,
}

/// Metadata of the Node that a Machine becomes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineNodeMetadata {
    /// Of machine-controller's API; it has no effect: a Node has the name of its Machine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Labels of the Node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::node_labels")]
    pub labels: BTreeMap<String, String>,
    /// Annotations of the Node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::node_annotations")]
    pub annotations: BTreeMap<String, String>,
    /// Has no effect.
    #[serde(default, skip_serializing)]
    #[schemars(schema_with = "schema::nullable_time")]
    pub creation_timestamp: Option<Time>,
}

impl MachineNodeMetadata {
    pub(super) fn is_empty(&self) -> bool {
        self.name.is_empty() && self.labels.is_empty() && self.annotations.is_empty()
    }
}
