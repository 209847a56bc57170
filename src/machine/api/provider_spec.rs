//! The provider block of a Machine, which is metalform's own: which Hosts it may claim, and how one is deployed.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::label_selector::LabelSelector;
use super::rules;
use super::ssh_public_key::SshPublicKey;
use crate::model::platform::Distribution;

/// `providerSpec` of a Machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderSpec {
    /// The provider block. The API server stores unknown fields of it: they are errors, where pruning them would change
    /// what is selected.
    #[schemars(with = "ProviderConfig")]
    pub value: Value,
}

/// `providerSpec.value`, decoded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ProviderConfig {
    /// metalform is the only one.
    pub cloud_provider: CloudProvider,
    /// The Hosts that a Machine may claim. Empty: any Host.
    #[serde(default, skip_serializing_if = "CloudProviderSpec::is_empty")]
    pub cloud_provider_spec: CloudProviderSpec,
    /// The operating system that a Host must have, as in ID of os-release(5): debian, ubuntu. None is installed.
    #[schemars(with = "String", length(max = 64), extend("x-kubernetes-validations" = rules::distribution()))]
    pub operating_system: Distribution,
    /// Settings of the operating system.
    #[serde(default, skip_serializing_if = "OperatingSystemSpec::is_default")]
    pub operating_system_spec: OperatingSystemSpec,
    /// Public keys that may log in as the SSH user of the Host. They are added when the Host is deployed; none is ever
    /// removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>", length(max = 64))]
    pub ssh_public_keys: Vec<SshPublicKey>,
}

/// The provider of Machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CloudProvider {
    /// Bare hosts, over SSH.
    Metalform,
}

/// The Hosts that a Machine may claim. Without any requirement, every Host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct CloudProviderSpec {
    /// Labels of the Hosts.
    #[serde(default, skip_serializing_if = "LabelSelector::is_empty")]
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub host_selector: LabelSelector,
    /// The failure domain of the Hosts; by default any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 63))]
    pub failure_domain: Option<String>,
}

/// Settings of the operating system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct OperatingSystemSpec {
    /// Whether all packages are upgraded, and the Host is rebooted if that requires it, before it is deployed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dist_upgrade_on_boot: bool,
}

/// A provider block is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("providerSpec.value{}{path}: {reason}", if path.is_empty() { "" } else { "." })]
pub struct ProviderSpecError {
    /// `cloudProviderSpec.hostSelector.matchExpressions[0]`; empty for the block as a whole.
    pub path: String,
    /// Lowercase, without a period.
    pub reason: String,
}

impl ProviderSpec {
    /// The provider block. Unknown fields are errors at every level.
    ///
    /// # Errors
    /// The first problem.
    pub fn decode(&self) -> Result<ProviderConfig, ProviderSpecError> {
        if !self.value.is_object() {
            return Err(ProviderSpecError { path: String::new(), reason: "expected an object".to_owned() });
        }
        serde_path_to_error::deserialize(&self.value).map_err(|error| ProviderSpecError {
            path: match error.path().to_string() {
                path if path == "." => String::new(),
                path => path,
            },
            reason: error.inner().to_string(),
        })
    }
}

impl CloudProviderSpec {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a Host with these labels, in this failure domain, may be claimed.
    pub fn match_host(&self, labels: &BTreeMap<String, String>, failure_domain: Option<&str>) -> bool {
        let domain = self.failure_domain.as_deref();
        self.host_selector.matches(labels) && (domain.is_none() || domain == failure_domain)
    }
}

impl OperatingSystemSpec {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests;
