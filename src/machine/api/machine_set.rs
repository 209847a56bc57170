//! A MachineSet: the Machines of one revision of a MachineDeployment.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::label_selector::LabelSelector;
use super::machine_template::MachineTemplate;
use super::{rules, schema};

/// The Machines of one revision of a MachineDeployment, which overwrites what is edited here.
#[expect(clippy::duplicated_attributes, reason = "several printer columns have the same type")]
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.k8s.io",
    version = "v1alpha1",
    kind = "MachineSet",
    namespaced,
    doc = "The Machines of one revision of a MachineDeployment.",
    derive = "PartialEq",
    status = "MachineSetStatus",
    shortname = "ms",
    category = "metalform",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.labelSelector"
    ),
    printcolumn(name = "Desired", type_ = "integer", json_path = ".spec.replicas"),
    printcolumn(name = "Current", type_ = "integer", json_path = ".status.replicas"),
    printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyReplicas"),
    printcolumn(name = "Available", type_ = "integer", json_path = ".status.availableReplicas"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Version", type_ = "string", json_path = ".spec.template.spec.versions.kubelet")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::machine_set()))]
pub struct MachineSetSpec {
    /// How many Machines there shall be.
    // Negative numbers are refused by the API server itself, for the scale subresource.
    #[serde(default = "one")]
    pub replicas: i32,
    /// For how many seconds a node must be Ready before it counts as available.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-validations" = rules::not_negative()))]
    pub min_ready_seconds: i32,
    /// Which Machines are deleted first when there are too many, among those that are alike otherwise.
    #[serde(default)]
    pub delete_policy: DeletePolicy,
    /// The Machines of this MachineSet; it matches template.metadata.labels.
    #[schemars(extend("x-kubernetes-validations" = rules::selector()))]
    pub selector: LabelSelector,
    /// The Machines.
    pub template: MachineTemplate,
}

/// Which of several like Machines is deleted first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletePolicy {
    /// Any of them.
    #[default]
    Random,
    /// The one that was created last.
    Newest,
    /// The one that was created first.
    Oldest,
}

/// `status` of a MachineSet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineSetStatus {
    /// The generation of the MachineSet that this status is of.
    pub observed_generation: i64,
    /// The selector as a string, for the scale subresource.
    pub label_selector: String,
    /// Machines that are not being deleted.
    pub replicas: i32,
    /// Those with all labels of the template.
    pub fully_labeled_replicas: i32,
    /// Those whose Node is Ready.
    pub ready_replicas: i32,
    /// Those whose Node has been Ready for minReadySeconds.
    pub available_replicas: i32,
    /// Why no Machine can be created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_reason: Option<MachineSetError>,
    /// `errorReason`, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Conditions, one of each type.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// Why no Machine can be created (machine-controller, `MachineSetStatusError`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MachineSetError {
    /// The template is invalid.
    InvalidConfiguration,
}

fn one() -> i32 {
    1
}

impl MachineSetSpec {
    /// How many Machines there shall be.
    pub fn replicas(&self) -> u32 {
        u32::try_from(self.replicas).unwrap_or_default()
    }
}
