//! `etcd snapshots`: the snapshots that are kept, and where.

use super::command_error::{CommandError, ErrorClass};
use super::snapshot_distribution::{Distribution, look};
use super::snapshot_host::SnapshotHostError;
use super::snapshot_nodes::{SnapshotAccess, hosts, this_host};
use super::workspace::WorkspaceError;
use crate::etcd::snapshot_copies::SnapshotCopies;
use crate::model::error_chain::error_chain;

/// The snapshots of every host that was reached.
#[derive(Debug)]
pub struct SnapshotList {
    /// By host.
    pub copies: SnapshotCopies,
    /// Hosts whose snapshots are not known; one line each.
    pub warnings: Vec<String>,
}

/// Why the snapshots are not known.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotListError {
    /// This machine's name or the SSH options cannot be used.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// Those of this machine cannot be listed.
    #[error("{}", error_chain(.0))]
    Local(#[from] SnapshotHostError),
}

impl CommandError for SnapshotListError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Workspace(error) => error.class(),
            Self::Local(_) => ErrorClass::Host,
        }
    }

    fn errors(&self) -> Vec<String> {
        match self {
            Self::Workspace(error) => error.errors(),
            Self::Local(_) => vec![self.to_string()],
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Workspace(error) => error.hints(),
            Self::Local(_) => Vec::new(),
        }
    }
}

/// Reads every snapshot on every host, and compares each with the SHA-256 that the member appended to it. Changes nothing.
///
/// # Errors
/// When those of this machine cannot be listed. Other hosts that fail are warnings.
pub async fn snapshots(access: &SnapshotAccess) -> Result<SnapshotList, SnapshotListError> {
    let local = this_host(&access.layout)?;
    let hosts = hosts(access, local).await.map_err(WorkspaceError::from)?;
    let Distribution { copies, mut warnings } = look(&hosts).await?;
    warnings.extend(hosts.unlisted.map(|error| format!("the snapshots of other hosts are unknown: {error}")));
    Ok(SnapshotList { copies, warnings })
}
