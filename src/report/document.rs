//! Reports as JSON or YAML documents.

use std::time::Duration;

use serde::Serialize;

use crate::model::api_contract::API_VERSION;
use crate::service::cluster_changes::ClusterChanges;
use crate::service::membership_steps::MembershipStep;
use crate::service::new_host_key::NewHostKey;

/// The outcome of a command on hosts. Within one API version, fields are added and never removed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostsDocument<'a, T> {
    api_version: &'static str,
    kind: &'static str,
    /// Ordered by name.
    hosts: &'a [T],
    /// How the voters of etcd change, in a dry run.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    etcd: &'a [MembershipStep],
    /// Host keys that were seen for the first time.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    new_host_keys: &'a [NewHostKey],
    /// Images that leave the registry.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    obsolete_images: &'a [String],
}

impl<'a, T: Serialize> HostsDocument<'a, T> {
    /// A document of this kind.
    pub fn new(kind: &'static str, hosts: &'a [T]) -> Self {
        Self { api_version: API_VERSION, kind, hosts, etcd: &[], new_host_keys: &[], obsolete_images: &[] }
    }

    /// With what else changes.
    #[must_use]
    pub fn with(self, changes: &'a ClusterChanges) -> Self {
        Self {
            etcd: &changes.steps,
            new_host_keys: &changes.host_keys,
            obsolete_images: &changes.obsolete_images,
            ..self
        }
    }
}

/// Why a document cannot be serialised.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// As JSON.
    #[error("cannot serialise as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// As YAML.
    #[error("cannot serialise as YAML: {0}")]
    Yaml(String),
}

/// With milliseconds.
pub(super) fn rounded_seconds(elapsed: Duration) -> f64 {
    (elapsed.as_secs_f64() * 1000.0).round() / 1000.0
}

/// An indented JSON document with a final newline.
///
/// # Errors
/// When JSON cannot express the value.
pub fn json<T: Serialize>(document: &T) -> Result<String, DocumentError> {
    Ok(serde_json::to_string_pretty(document)? + "\n")
}

/// A YAML document.
///
/// # Errors
/// When YAML cannot express the value.
pub fn yaml<T: Serialize>(document: &T) -> Result<String, DocumentError> {
    serde_saphyr::to_string(document).map_err(|error| DocumentError::Yaml(error.to_string()))
}
