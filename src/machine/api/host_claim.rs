//! Which Machine has a Host.
//!
//! A claim is in `status`, which operators do not write: a Host that is replaced from a file keeps it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;

/// A Host belongs to a Machine until the claim is removed. It is set with the resource version of the Host without a
/// claim, so that one of several Machines gets it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostClaimRef {
    /// The Machine.
    pub machine: MachineReference,
    /// Greater than that of every earlier claim of this Host. It is recorded on the host itself, which refuses programs
    /// of an earlier claim.
    pub token: i64,
    /// When the claim was set.
    #[schemars(schema_with = "schema::time")]
    pub since: Time,
}

/// One Machine: another one of the same name has another UID.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineReference {
    /// Namespace of the Machine.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Name of the Machine.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// UID of the Machine.
    #[schemars(length(min = 1, max = 64))]
    pub uid: String,
}
