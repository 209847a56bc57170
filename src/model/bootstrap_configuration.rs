//! `/etc/metalform/bootstrap.yaml`: what a cluster is made from.
//!
//! Read in two steps: the file's own form (`syntax` for ours, `metalk8s` for MetalK8s'), then one
//! validation of the values, whose problems are all told at once.

use std::path::PathBuf;

use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::cluster::KubernetesOptions;
use super::cluster_networks::Networks;
use super::document::{Booleans, Document, Problem, Problems};
use super::name::HostName;

mod metalk8s;
mod networks;
mod syntax;
mod validate;

/// Our apiVersion.
pub const API_VERSION: &str = "metalform.dev/v1alpha1";
/// MetalK8s' apiVersions that are read too. In v1alpha2 a plane was a bare CIDR.
pub const ALIASES: [&str; 2] = ["metalk8s.scality.com/v1alpha3", "metalk8s.scality.com/v1alpha2"];
/// The kind, in both.
pub const KIND: &str = "BootstrapConfiguration";

/// What the file says, validated, with defaults in place of what it leaves out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootstrapConfiguration {
    /// Networks and the addresses that follow from them.
    pub networks: Networks,
    /// The node that holds the authorities (`ca.node`, MetalK8s: `ca.minion`); `None` is the bootstrap node.
    pub ca_node: Option<HostName>,
    /// Directories with bundles (MetalK8s: `archives`): absolute, at least one.
    pub bundles: Vec<PathBuf>,
    /// Settings of the Kubernetes components.
    pub kubernetes: KubernetesOptions,
    /// Fields of a MetalK8s file that have no meaning here and were left out of account.
    pub warnings: Vec<Problem>,
}

/// What says how the rest is to be read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    api_version: Spanned<String>,
    kind: Spanned<String>,
}

impl BootstrapConfiguration {
    /// The JSON schema (draft 7) of a file: of ours, or of MetalK8s' where its apiVersion is one of theirs.
    pub fn schema() -> serde_json::Value {
        let mut generator = SchemaSettings::draft07().into_generator();
        let ours = generator.subschema_for::<syntax::File>();
        let metalk8s = generator.subschema_for::<metalk8s::File>();
        serde_json::json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "title": "What a cluster is made from",
            "type": "object",
            "if": { "properties": { "apiVersion": { "enum": ALIASES } }, "required": ["apiVersion"] },
            "then": metalk8s,
            "else": ours,
            "definitions": generator.take_definitions(true),
        })
    }

    /// Reads and validates.
    ///
    /// # Errors
    /// A problem of form (YAML, an unknown field) alone; or else every problem of the values.
    pub fn parse(document: &Document<'_>) -> Result<Self, Problems> {
        let Header { api_version, kind } = document.parse(Booleans::Strict)?;
        if kind.value != KIND {
            let message = format!("kind {:?} is not {KIND}", kind.value);
            return Err(Problems(vec![document.problem(kind.referenced, message)]));
        }
        let (file, warnings) = if api_version.value == API_VERSION {
            (document.parse(Booleans::Strict)?, Vec::new())
        } else if ALIASES.contains(&api_version.value.as_str()) {
            document.parse::<metalk8s::File>(Booleans::Yaml11)?.translate(document)
        } else {
            let message = format!(
                "apiVersion {:?} is none of {API_VERSION}, {}",
                api_version.value,
                ALIASES.join(", ")
            );
            return Err(Problems(vec![document.problem(api_version.referenced, message)]));
        };
        validate::validate(document, file, warnings)
    }
}

#[cfg(test)]
mod tests;
