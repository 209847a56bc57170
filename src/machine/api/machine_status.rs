//! What is known of a Machine.

use k8s_openapi::api::core::v1::{NodeAddress, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;
use super::version::MachineVersions;

/// `status` of a Machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineStatus {
    /// The generation of the Machine that this status is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The Host that it has chosen. Recorded before the Host is claimed, so that an interrupted claim is found again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// When the deployment of the Host began. The time to join the cluster is measured from here, so that it never runs
    /// while the Machine waits for a Host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::nullable_time")]
    pub provisioning_since: Option<Time>,
    /// The Node, once it has joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object_reference")]
    pub node_ref: Option<ObjectReference>,
    /// When this status last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::nullable_time")]
    pub last_updated: Option<Time>,
    /// The versions that the Node reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versions: Option<MachineVersions>,
    /// Why it will never become a node as it is specified. Absent for what may pass, such as a pool without free Hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_reason: Option<MachineError>,
    /// `errorReason`, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Addresses of the Host on the cluster's networks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::node_addresses")]
    pub addresses: Vec<NodeAddress>,
    /// Conditions, one of each type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// What was last done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_operation: Option<MachineOperation>,
    /// How far it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<MachinePhase>,
}

/// How far a Machine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum MachinePhase {
    /// It has no Host.
    Pending,
    /// Its Host is being deployed.
    Provisioning,
    /// Its Host is deployed; the Node has not joined, or is not Ready for the first time.
    Provisioned,
    /// Its Node has been Ready.
    Running,
    /// It is drained, and its Host is reset.
    Deleting,
    /// See `errorReason`.
    Failed,
}

impl MachinePhase {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::Provisioning, Self::Provisioned, Self::Running, Self::Deleting, Self::Failed];
}

/// Why a Machine will never become a node (machine-controller, `MachineStatusError`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub enum MachineError {
    /// The specification is invalid.
    InvalidConfiguration,
    /// The specification was changed.
    UnsupportedChange,
    /// No Host of the pool can ever satisfy it.
    InsufficientResources,
    /// The Host could not be deployed.
    CreateError,
    /// The Host could not be changed.
    UpdateError,
    /// The Host could not be reset.
    DeleteError,
    /// The Node did not join in time.
    JoinClusterTimeoutError,
}

/// What was last done with a Machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineOperation {
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// When `state` last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::nullable_time")]
    pub last_updated: Option<Time>,
    /// `Processing`, `Failed` or `Successful`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// `Create` or `Delete`.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
}
