//! `operations`: the records of operations on this machine, and those of the cluster.

use tokio::time::timeout;

use super::cluster_copy::LIMIT;
use super::command_error::{CommandError, ErrorClass};
use super::record_sync::Summarise;
use crate::kube_api::{client, operation_records};
use crate::model::error_chain::error_chain;
use crate::model::operation_record::{OperationRecord, OperationStatus};
use crate::model::operation_summary::{OperationSummary, merged};
use crate::operation::cluster_site::ApiPort;
use crate::workspace::atomic_file::FileError;
use crate::workspace::layout::Layout;
use crate::workspace::operation_log;

/// Why there is nothing to show.
#[derive(Debug, thiserror::Error)]
pub enum OperationsError {
    /// The records cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// There is no such operation.
    #[error("no operation {0} is recorded")]
    Unknown(String),
    /// There is none at all.
    #[error("no operation is recorded on this machine or in its cluster")]
    None,
}

impl CommandError for OperationsError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Configuration
    }

    fn errors(&self) -> Vec<String> {
        vec![self.to_string()]
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::File(_) => vec!["run this command as root on the bootstrap node".to_owned()],
            Self::Unknown(_) => vec!["`metalform operations list` lists those that are kept".to_owned()],
            Self::None => Vec::new(),
        }
    }
}

/// All records of this machine, the oldest first.
///
/// # Errors
/// When they cannot be read.
pub fn list(layout: &Layout) -> Result<Vec<OperationRecord>, OperationsError> {
    let mut records = Vec::new();
    for id in operation_log::ids(layout)? {
        // One may be removed meanwhile.
        records.extend(operation_log::read(layout, &id)?);
    }
    Ok(records)
}

/// The record with this id.
///
/// # Errors
/// When there is none, or it cannot be read.
pub fn one(layout: &Layout, id: &str) -> Result<OperationRecord, OperationsError> {
    operation_log::read(layout, id)?.ok_or_else(|| OperationsError::Unknown(id.to_owned()))
}

/// Operations that this machine or the cluster has a record of, the oldest first. A cluster whose API does not answer
/// within [`LIMIT`] is left out, with a warning.
///
/// # Errors
/// When the records of this machine cannot be read.
pub async fn known(
    layout: &Layout,
    api: &ApiPort,
    summarise: Summarise,
) -> Result<Vec<OperationSummary>, OperationsError> {
    let local = list(layout)?.iter().map(summarise).collect();
    Ok(merged(local, in_cluster(api).await))
}

/// The operation with this id; without one, the newest. The cluster is needed only where this machine has no record of it.
///
/// # Errors
/// When there is none, or records of this machine cannot be read.
pub async fn known_one(
    layout: &Layout,
    api: &ApiPort,
    id: Option<&str>,
    summarise: Summarise,
) -> Result<OperationSummary, OperationsError> {
    let local = match id {
        Some(id) => operation_log::read(layout, id)?,
        None => list(layout)?.pop(),
    };
    if let Some(record) = local {
        return Ok(summarise(&record));
    }
    let mut operations = in_cluster(api).await;
    match id {
        Some(id) => operations
            .into_iter()
            .find(|operation| operation.id == id)
            .ok_or_else(|| OperationsError::Unknown(id.to_owned())),
        None => operations.pop().ok_or(OperationsError::None),
    }
}

async fn in_cluster(api: &ApiPort) -> Vec<OperationSummary> {
    let listing = async {
        match api {
            ApiPort::Client(client) => operation_records::list(client).await,
            // There is no cluster yet.
            ApiPort::Kubeconfig(path) if !path.exists() => Ok(Vec::new()),
            ApiPort::Kubeconfig(path) => {
                operation_records::list(&client::connect_without_retry(path).await?).await
            }
        }
    };
    let reason = match timeout(LIMIT, listing).await {
        Ok(Ok(operations)) => return operations,
        Ok(Err(error)) => error_chain(&error),
        Err(_) => "the API server does not answer in time".to_owned(),
    };
    tracing::warn!("{reason}: operations are shown that this machine has a record of, without the cluster's");
    Vec::new()
}

/// The record with this id; without one, the newest that runs, or else the newest.
///
/// # Errors
/// As [`one`].
pub fn to_follow(layout: &Layout, id: Option<&str>) -> Result<OperationRecord, OperationsError> {
    if let Some(id) = id {
        return one(layout, id);
    }
    let mut records = list(layout)?;
    let running = records.iter().rposition(|record| record.status() == OperationStatus::Running);
    match running {
        Some(position) => Ok(records.swap_remove(position)),
        None => records.pop().ok_or(OperationsError::None),
    }
}
