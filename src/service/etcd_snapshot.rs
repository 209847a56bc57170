//! `etcd snapshot`: saves a copy of etcd's database that is known to be whole.

use std::path::PathBuf;

use super::command_error::{CommandError, ErrorClass};
use super::etcd_members::{self, EtcdMembersError};
use crate::etcd::snapshot::{self, SnapshotError};
use crate::model::error_chain::error_chain;
use crate::workspace::atomic_file::{FileError, StagedFile};
use crate::workspace::layout::Layout;

/// Which snapshot to take.
#[derive(Debug, Clone)]
pub struct SnapshotRequest {
    /// The file to create.
    pub file: PathBuf,
    /// The client URL of the member to take it of; without one the newest healthy voter.
    pub endpoint: Option<String>,
}

/// A snapshot that was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedSnapshot {
    /// The file.
    pub file: PathBuf,
    /// Its size, bytes.
    pub size: u64,
    /// The member, or the endpoint that was asked for.
    pub member: String,
    /// The member's revision when it was asked. The snapshot has this one or a later one; unknown of an endpoint.
    pub revision: Option<i64>,
}

/// Why no snapshot was saved. There is no file then.
#[derive(Debug, thiserror::Error)]
pub enum EtcdSnapshotError {
    /// The members cannot be observed.
    #[error(transparent)]
    Members(#[from] EtcdMembersError),
    /// None of them can be asked.
    #[error("no voting member of etcd is healthy")]
    NoSource,
    /// The file exists, or its directory does not, or cannot be written.
    #[error("{}", error_chain(.0))]
    File(FileError),
    /// The member did not send all of it.
    #[error("{from}: {}", error_chain(error))]
    Stream {
        /// The member or the endpoint.
        from: String,
        /// Why.
        error: SnapshotError,
    },
}

impl CommandError for EtcdSnapshotError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::File(_) | Self::Stream { error: SnapshotError::Kept(_), .. } => ErrorClass::Configuration,
            Self::Members(_) | Self::NoSource | Self::Stream { .. } => ErrorClass::Etcd,
        }
    }

    fn errors(&self) -> Vec<String> {
        vec![self.to_string()]
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Members(EtcdMembersError::Observe(_)) | Self::NoSource => vec![
                "without quorum, what one member has is saved with --endpoint https://127.0.0.1:2379"
                    .to_owned(),
            ],
            Self::Members(error) => error.hints(),
            Self::File(_) | Self::Stream { error: SnapshotError::Kept(_), .. } => {
                vec!["name a file that does not exist, in a directory with enough space".to_owned()]
            }
            Self::Stream { .. } => vec!["`metalform etcd health` shows every member".to_owned()],
        }
    }
}

/// Saves a snapshot with mode 0600: it contains every Secret of the cluster. The file appears once it is whole.
///
/// # Errors
/// There is no file then.
pub async fn save(request: SnapshotRequest, layout: &Layout) -> Result<SavedSnapshot, EtcdSnapshotError> {
    let SnapshotRequest { file, endpoint } = request;
    let mut staged = StagedFile::new(&file, 0o600).map_err(EtcdSnapshotError::File)?;
    let (access, urls, member, revision) = match endpoint {
        Some(url) => (etcd_members::access(layout, vec![url.clone()])?, vec![url.clone()], url, None),
        None => {
            let access = etcd_members::all(layout).await?;
            let observed = access.observe().await.map_err(EtcdMembersError::Observe)?;
            let source = snapshot::source(&observed).ok_or(EtcdSnapshotError::NoSource)?;
            let revision = source.status().map(|status| status.revision);
            (access, source.client_urls.clone(), source.title().to_owned(), revision)
        }
    };
    let streamed =
        snapshot::stream(&access, &urls.iter().collect::<Vec<_>>(), |part| staged.append(part)).await;
    let size = streamed.map_err(|error| EtcdSnapshotError::Stream { from: member.clone(), error })?;
    staged.create().map_err(EtcdSnapshotError::File)?;
    Ok(SavedSnapshot { file, size, member, revision })
}
