//! The Nodes of the cluster, also while there is no API: as they were when it last answered.

use std::time::Duration;

use tokio::time::timeout;

use super::command_error::{CommandError, ErrorClass};
use crate::kube_api::client::{self, ApiError};
use crate::kube_api::nodes;
use crate::model::error_chain::error_chain;
use crate::model::name::HostName;
use crate::model::node::{NodeManifest, NodeSpec};
use crate::workspace::layout::Layout;
use crate::workspace::node_records::{self, NodeRecordsError};

/// How long the API may take; it is not waited for.
const DEADLINE: Duration = Duration::from_secs(5);

/// Why it is not known which Nodes there are.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct RecordedNodesError(#[from] NodeRecordsError);

impl CommandError for RecordedNodesError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Configuration
    }

    fn errors(&self) -> Vec<String> {
        vec![self.to_string()]
    }

    fn hints(&self) -> Vec<String> {
        vec!["run this command as root on the bootstrap node; operations on the cluster record its Nodes there".to_owned()]
    }
}

/// Records the Nodes as the API has them now. Where that is not possible, a warning: no operation fails of it.
pub async fn record(layout: &Layout) {
    if let Err(reason) = try_record(layout).await {
        tracing::warn!("the Nodes were not recorded on this machine: {reason}");
    }
}

async fn try_record(layout: &Layout) -> Result<(), String> {
    let listed = timeout(DEADLINE, list(layout)).await.map_err(|_| "the API does not answer".to_owned())?;
    let manifests = listed.map_err(|error| error_chain(&error))?;
    node_records::save(layout, &manifests).map_err(|error| error_chain(&error))
}

async fn list(layout: &Layout) -> Result<Vec<NodeManifest>, ApiError> {
    let client = client::connect_without_retry(&layout.admin_conf()).await?;
    Ok(nodes::list(&client).await?.iter().map(NodeManifest::from).collect())
}

/// What the manifest of one Node specifies; `None` where there is no such Node, or no cluster yet.
///
/// # Errors
/// When the records cannot be read, and the API does not answer.
pub async fn find(layout: &Layout, name: &HostName) -> Result<Option<NodeSpec>, RecordedNodesError> {
    match current(layout).await {
        Ok(specs) => Ok(specs.into_iter().find(|spec| spec.name == *name)),
        Err(RecordedNodesError(NodeRecordsError::None { .. })) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What the manifests of all Nodes specify: as the API has them, and where it does not answer, as they were recorded. Those
/// that are wrong are left out, with a warning.
///
/// # Errors
/// When they are neither known from the API nor from the records.
pub async fn current(layout: &Layout) -> Result<Vec<NodeSpec>, RecordedNodesError> {
    let manifests = match timeout(DEADLINE, list(layout)).await {
        Ok(Ok(manifests)) => manifests,
        Ok(Err(_)) | Err(_) => node_records::read(layout)?,
    };
    let mut specs = Vec::new();
    for manifest in &manifests {
        match NodeSpec::parse(manifest) {
            Ok(spec) => specs.push(spec),
            Err(problems) => tracing::warn!("{problems}"),
        }
    }
    Ok(specs)
}
