//! How the power of a Host is switched.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{rules, schema};

/// A program that switches the power of a Host, and reports whether it is on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostPower {
    /// Name of a program in /etc/metalform/power.d of the nodes that run the controllers; neither a path nor a command, so
    /// that permission to write Hosts is not permission to run other programs there.
    #[schemars(length(max = 63), extend("x-kubernetes-validations" = rules::hook()))]
    pub hook: String,
    /// What the program is given, such as the address of a management controller.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::parameters")]
    pub parameters: BTreeMap<String, String>,
    /// The Secret whose data the program is given too, such as a password. Its type is metalform.dev/power: no other is given
    /// to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretReference>,
}

/// A Secret in any namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretReference {
    /// Namespace of the Secret.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}
