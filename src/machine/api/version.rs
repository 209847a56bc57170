//! Versions of Kubernetes in the specification of a Machine.

use std::sync::LazyLock;

use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rules::{self, SEMANTIC_VERSION};

static PATTERN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(SEMANTIC_VERSION).expect("the pattern is a regular expression"));

/// The versions that a Machine runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineVersions {
    /// Semantic version of the kubelet, with or without a leading v. Changing it replaces every node.
    #[schemars(length(max = 64), extend("x-kubernetes-validations" = rules::version()))]
    pub kubelet: String,
    /// Of machine-controller's API; Machines run no control plane here, and it has no effect.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub control_plane: String,
}

/// A string is not a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("versions.kubelet is {0:?}, expected a semantic version such as 1.35.4")]
pub struct KubeletVersionError(String);

impl MachineVersions {
    /// The version of the kubelet without a leading `v`, so that `1.35.4` and `v1.35.4` are equal.
    ///
    /// # Errors
    /// When it is not a semantic version.
    pub fn kubelet(&self) -> Result<&str, KubeletVersionError> {
        let text = self.kubelet.as_str();
        match PATTERN.is_match(text) {
            true => Ok(text.strip_prefix('v').unwrap_or(text)),
            false => Err(KubeletVersionError(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubelet_has_a_semantic_version() {
        let parse = |text: &str| {
            let versions = MachineVersions { kubelet: text.to_owned(), control_plane: String::new() };
            versions.kubelet().map(str::to_owned)
        };
        for (text, expected) in
            [("1.30.3", "1.30.3"), ("v1.30.3", "1.30.3"), ("1.36.0-rc.1+k3s1", "1.36.0-rc.1+k3s1")]
        {
            assert_eq!(parse(text).as_deref(), Ok(expected));
        }
        for text in
            ["", "v", "1.30", "1.30.03", "vv1.30.3", "1.30.3 ", "latest", "1.30.3-", "1.30.3.4", "1.30.3\n"]
        {
            assert_eq!(parse(text), Err(KubeletVersionError(text.to_owned())));
        }
    }
}
