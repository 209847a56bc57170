//! `/etc/metalform/bootstrap.yaml`: the description of a cluster.
//!
//! Parsed in two steps: the file's own form (`syntax` for metalform's, `metalk8s` for MetalK8s'), then one
//! validation of the values that reports all problems at once.

use std::path::PathBuf;

use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::api_contract::{API_VERSION, METALK8S_API_VERSIONS};
use super::bundle_key::BundleKey;
use super::cluster::{EtcdSnapshotOptions, KubernetesOptions};
use super::cluster_networks::Networks;
use super::document::{Booleans, Document, Problem, Problems};
use super::name::HostName;

mod metalk8s;
mod networks;
mod syntax;
mod validate;

/// The `kind` of the document, in both forms.
pub const KIND: &str = "BootstrapConfiguration";

/// A validated configuration, with defaults in place of absent fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootstrapConfiguration {
    /// Networks and the addresses derived from them.
    pub networks: Networks,
    /// The node that holds the CA keys (`ca.node`, MetalK8s: `ca.minion`); `None` is the bootstrap node.
    pub ca_node: Option<HostName>,
    /// Directories of the bundles, absolute; at least one (`bundles`, MetalK8s: `archives`). The control plane, and each
    /// node that names no version, is made of the first one.
    pub bundles: Vec<PathBuf>,
    /// The key that each bundle must be signed with; `None` accepts bundles without a signature.
    pub bundle_key: Option<BundleKey>,
    /// Settings of the Kubernetes components.
    pub kubernetes: KubernetesOptions,
    /// The snapshots of etcd that a timer takes.
    pub etcd_snapshots: EtcdSnapshotOptions,
    /// Fields of a MetalK8s file that have no meaning here and were ignored.
    pub warnings: Vec<Problem>,
}

/// Selects the form of the rest.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    api_version: Spanned<String>,
    kind: Spanned<String>,
}

impl BootstrapConfiguration {
    /// The JSON schema (draft 7) of a file: MetalK8s' form where `apiVersion` is one of theirs, else metalform's.
    pub fn schema() -> serde_json::Value {
        let mut generator = SchemaSettings::draft07().into_generator();
        let ours = generator.subschema_for::<syntax::File>();
        let metalk8s = generator.subschema_for::<metalk8s::File>();
        serde_json::json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "title": "The description of a metalform cluster",
            "type": "object",
            "if": { "properties": { "apiVersion": { "enum": METALK8S_API_VERSIONS } }, "required": ["apiVersion"] },
            "then": metalk8s,
            "else": ours,
            "definitions": generator.take_definitions(true),
        })
    }

    /// Parses and validates a file.
    ///
    /// # Errors
    /// A syntax problem (YAML, an unknown field) alone; otherwise every problem of the values.
    pub fn parse(document: &Document<'_>) -> Result<Self, Problems> {
        let Header { api_version, kind } = document.parse(Booleans::Strict)?;
        if kind.value != KIND {
            let message = format!("kind is {:?}, expected {KIND}", kind.value);
            return Err(Problems(vec![document.problem(kind.referenced, message)]));
        }
        let (file, warnings) = if api_version.value == API_VERSION {
            (document.parse(Booleans::Strict)?, Vec::new())
        } else if METALK8S_API_VERSIONS.contains(&api_version.value.as_str()) {
            document.parse::<metalk8s::File>(Booleans::Yaml11)?.translate(document)
        } else {
            let message = format!(
                "unsupported apiVersion {:?}; supported are {API_VERSION}, {}",
                api_version.value,
                METALK8S_API_VERSIONS.join(", ")
            );
            return Err(Problems(vec![document.problem(api_version.referenced, message)]));
        };
        validate::validate(document, file, warnings)
    }
}

#[cfg(test)]
mod tests;
