//! What is known of a Host.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::host_claim::HostClaimRef;
use super::host_facts::HostFacts;
use super::host_queue::HostQueue;
use super::host_state::HostState;
use super::{rules, schema};
use crate::machine::host_job::HostJob;

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
    /// The token of the last claim or reset, or a larger one of its host; 0 at first.
    pub last_token: i64,
    /// Machines that failed to join since the last one that joined, once a job had begun to make a node of the host.
    pub failures: i32,
    /// When a Machine last failed to join, or ended while its host was not fit to be a node.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::nullable_time")]
    pub last_failure: Option<Time>,
    /// The jobs that have succeeded since the last claim or reset began, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub done_jobs: Vec<HostJob>,
    /// The job that last failed since then.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "FailedJob")]
    pub failed_job: Option<FailedJob>,
    /// How long jobs have waited for their turn since then; absent where none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "HostQueue")]
    pub job_queue: Option<HostQueue>,
    /// When the last inspection that succeeded ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::nullable_time")]
    pub inspected_at: Option<Time>,
    /// What it has found that a clean host does not have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::residue")]
    pub residue: Vec<String>,
    /// Since when it does not answer over SSH; absent while it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::nullable_time")]
    pub silent_since: Option<Time>,
    /// Its power hook reports that it is off.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub powered_off: bool,
    /// What was observed when it was last inspected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<HostFacts>,
    /// Conditions, one of each type.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// A job that failed, and is repeated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailedJob {
    /// Which one.
    pub job: HostJob,
    /// How many times in a row.
    pub attempts: i32,
    /// When it last failed.
    #[schemars(schema_with = "schema::time")]
    pub last: Time,
    /// The error.
    #[schemars(length(max = 4096))]
    pub message: String,
}
