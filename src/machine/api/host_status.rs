//! What is known of a Host.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::host_claim::HostClaimRef;
use super::host_facts::HostFacts;
use super::host_state::HostState;
use super::{rules, schema};

/// `status` of a Host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = rules::host_status()))]
pub struct HostStatus {
    /// The generation of the Host that this status is of.
    pub observed_generation: i64,
    /// How far it is from being free.
    pub state: HostState,
    /// When it entered this state.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::nullable_time")]
    pub state_since: Option<Time>,
    /// The Machine that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "HostClaimRef")]
    pub claim: Option<HostClaimRef>,
    /// The token of the last claim; 0 before the first one.
    pub last_token: i64,
    /// Deployments that failed since the last one that succeeded.
    pub failures: i32,
    /// When the last deployment failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::nullable_time")]
    pub last_failure: Option<Time>,
    /// What was observed when it was last inspected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<HostFacts>,
    /// Conditions, one of each type.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}
