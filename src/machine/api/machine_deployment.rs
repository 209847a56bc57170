//! A MachineDeployment: a group of like nodes, kept in number and replaced a few at a time.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::drain_timeout::{DrainTimeout, DrainTimeoutError};
use super::label_selector::LabelSelector;
use super::machine_template::MachineTemplate;
use super::remediation::Remediation;
use super::rolling_update::RolloutStrategy;
use super::rollout_record::RolloutRecord;
use super::{rules, schema};

/// A group of like nodes. Defaults are those of machine-controller.
#[expect(clippy::duplicated_attributes, reason = "several printer columns have the same type")]
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.k8s.io",
    version = "v1alpha1",
    kind = "MachineDeployment",
    namespaced,
    doc = "A group of like nodes. A change of its template replaces every one of them, some at a time.",
    derive = "PartialEq",
    status = "MachineDeploymentStatus",
    shortname = "md",
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
    printcolumn(name = "Up-to-date", type_ = "integer", json_path = ".status.updatedReplicas"),
    printcolumn(name = "Paused", type_ = "boolean", json_path = ".spec.paused", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Version", type_ = "string", json_path = ".spec.template.spec.versions.kubelet")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::machine_deployment()))]
pub struct MachineDeploymentSpec {
    /// How many nodes there shall be.
    // Negative numbers are refused by the API server itself, for the scale subresource.
    #[serde(default = "one")]
    pub replicas: i32,
    /// The Machines of this MachineDeployment; it matches template.metadata.labels, and those of no other one.
    #[schemars(extend("x-kubernetes-validations" = rules::selector()))]
    pub selector: LabelSelector,
    /// The Machines. Any change replaces every node.
    pub template: MachineTemplate,
    /// How nodes are replaced.
    #[serde(default)]
    pub strategy: RolloutStrategy,
    /// For how many seconds a node must be Ready before it counts as available.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-validations" = rules::not_negative()))]
    pub min_ready_seconds: i32,
    /// How many old MachineSets without replicas are kept for a rollback.
    #[serde(default = "one")]
    #[schemars(extend("x-kubernetes-validations" = rules::not_negative()))]
    pub revision_history_limit: i32,
    /// Whether changes of the template are held back.
    #[serde(default)]
    pub paused: bool,
    /// After how many seconds without progress the condition Progressing is False.
    #[serde(default = "progress_deadline")]
    #[schemars(extend("x-kubernetes-validations" = rules::not_negative()))]
    pub progress_deadline_seconds: i32,
    /// How long a node may take to drain, where its Machine does not define it: such as 2h; 0 is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 32), extend("x-kubernetes-validations" = rules::duration()))]
    pub node_drain_timeout: Option<String>,
    /// Which Machines are replaced because their nodes are unhealthy; none by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Remediation")]
    pub remediation: Option<Remediation>,
}

/// `status` of a MachineDeployment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineDeploymentStatus {
    /// The generation of the MachineDeployment that this status is of.
    pub observed_generation: i64,
    /// The selector as a string, for the scale subresource.
    pub label_selector: String,
    /// Machines that are not being deleted.
    pub replicas: i32,
    /// Those with the present template.
    pub updated_replicas: i32,
    /// Those whose Node is Ready.
    pub ready_replicas: i32,
    /// Those whose Node has been Ready for minReadySeconds.
    pub available_replicas: i32,
    /// How many are missing for all of them to be available.
    pub unavailable_replicas: i32,
    /// Conditions, one of each type.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The progress of the rollout, for progressDeadlineSeconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RolloutRecord")]
    pub rollout: Option<RolloutRecord>,
}

fn one() -> i32 {
    1
}

fn progress_deadline() -> i32 {
    600
}

impl MachineDeploymentSpec {
    /// How many nodes there shall be.
    pub fn replicas(&self) -> u32 {
        u32::try_from(self.replicas).unwrap_or_default()
    }

    /// How long a node may take to drain, where its Machine does not define it; `None` is the controller's default.
    ///
    /// # Errors
    /// When it is not a duration.
    pub fn node_drain_timeout(&self) -> Result<Option<DrainTimeout>, DrainTimeoutError> {
        self.node_drain_timeout.as_deref().map(DrainTimeout::parse).transpose()
    }
}
