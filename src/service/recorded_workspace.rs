//! The workspace of a master that stands by for the bootstrap node: what is recorded there in place of its files.

use std::path::Path;
use std::sync::Arc;

use super::command_error::{CommandError, ErrorClass};
use super::states;
use super::workspace::{WorkspaceError, WorkspaceRequest};
use crate::bundle::program_needs::ProgramNeeds;
use crate::operation::cluster_site::{ProgramDigest, Workspace};
use crate::workspace::cluster_record::{ClusterRecord, ClusterRecordError};
use crate::workspace::trust::Subject;

/// Why there is no workspace on this master.
#[derive(Debug, thiserror::Error)]
pub enum RecordedWorkspaceError {
    /// The record.
    #[error(transparent)]
    Record(#[from] ClusterRecordError),
    /// The rest.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
}

impl CommandError for RecordedWorkspaceError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Record(_) => ErrorClass::Configuration,
            Self::Workspace(error) => error.class(),
        }
    }

    fn errors(&self) -> Vec<String> {
        match self {
            Self::Record(error) => vec![error.to_string()],
            Self::Workspace(error) => error.errors(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Record(_) => {
                vec!["on the bootstrap node, run `metalform expand`, which writes it".to_owned()]
            }
            Self::Workspace(error) => error.hints(),
        }
    }
}

/// Opens it. It can deploy and reset hosts of the pool, and can issue nothing.
///
/// # Errors
/// The first part that is missing or wrong.
pub async fn open(
    request: WorkspaceRequest,
    record: &Path,
) -> Result<Arc<Workspace>, RecordedWorkspaceError> {
    if !rustix::process::geteuid().is_root() {
        return Err(WorkspaceError::NotRoot.into());
    }
    let record = ClusterRecord::read(record)?;
    let pool = request.origin.ssh.pool(&request.ssh_environment, request.clock, None).await;
    Ok(Arc::new(Workspace {
        layout: request.layout,
        configuration: record.configuration(),
        bundles: record.cluster_bundles().map_err(ClusterRecordError::from)?,
        library: states::library(request.origin.tree.as_deref()).map_err(WorkspaceError::from)?,
        subject: Subject {
            name: record.bootstrap_node.clone(),
            address: record.bootstrap_address,
            indexes: Vec::new(),
        },
        record: Some(record),
        metalform: std::env::current_exe().map_err(WorkspaceError::Executable)?,
        metalform_digest: ProgramDigest::default(),
        metalform_needs: ProgramNeeds::of_running().map_err(WorkspaceError::Executable)?,
        pool: Arc::new(pool.map_err(WorkspaceError::from)?),
        now: request.clock,
        report: request.events,
    }))
}
