//! How long the jobs of a claim have waited for their turn.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;

/// The hosts that are provisioned at the same time are limited. The time until the turn of a job does not count towards
/// the time that a Machine has to join.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HostQueue {
    /// Since when a job waits; absent while none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::nullable_time")]
    pub since: Option<Time>,
    /// How long jobs have waited before, in seconds.
    pub waited_seconds: i64,
}
