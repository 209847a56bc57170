//! `etcd snapshot`: saves a copy of etcd's database that is known to be whole.

use std::path::PathBuf;

use super::command_error::{CommandError, ErrorClass};
use super::etcd_members::{self, EtcdMembersError};
use crate::etcd::client::EtcdAccess;
use crate::etcd::member::Status;
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
                "without quorum, `metalform etcd snapshot FILE --endpoint https://ADDRESS:2379` saves what the member at \
                 that address has"
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

/// The member to take a snapshot of.
pub(super) struct SnapshotSource {
    access: EtcdAccess,
    urls: Vec<String>,
    /// Its name, or the endpoint that was specified.
    pub member: String,
    /// What it reported; unknown of an endpoint.
    pub status: Option<Status>,
}

/// The member at this client URL; without one the newest healthy voter.
///
/// # Errors
/// When no member can be used.
pub(super) async fn source(
    endpoint: Option<String>,
    layout: &Layout,
) -> Result<SnapshotSource, EtcdSnapshotError> {
    if let Some(url) = endpoint {
        let access = etcd_members::access(layout, vec![url.clone()])?;
        return Ok(SnapshotSource { access, urls: vec![url.clone()], member: url, status: None });
    }
    let access = etcd_members::all(layout).await?;
    let observed = access.observe().await.map_err(EtcdMembersError::Observe)?;
    let source = snapshot::source(&observed).ok_or(EtcdSnapshotError::NoSource)?;
    let (urls, member) = (source.client_urls.clone(), source.title().to_owned());
    Ok(SnapshotSource { access, urls, member, status: source.status().cloned() })
}

/// Saves a snapshot of a member, and returns its size in bytes. See [`save`].
///
/// # Errors
/// There is no file then.
pub(super) async fn write(source: &SnapshotSource, mut staged: StagedFile) -> Result<u64, EtcdSnapshotError> {
    let urls: Vec<&String> = source.urls.iter().collect();
    let streamed = snapshot::stream(&source.access, &urls, |part| staged.append(part)).await;
    let size = streamed.map_err(|error| EtcdSnapshotError::Stream { from: source.member.clone(), error })?;
    staged.create().map_err(EtcdSnapshotError::File)?;
    Ok(size)
}

/// Saves a snapshot with mode 0600: it contains every Secret of the cluster. The file appears once it is whole.
///
/// # Errors
/// There is no file then.
pub async fn save(request: SnapshotRequest, layout: &Layout) -> Result<SavedSnapshot, EtcdSnapshotError> {
    let SnapshotRequest { file, endpoint } = request;
    let staged = StagedFile::new(&file, 0o600).map_err(EtcdSnapshotError::File)?;
    let source = source(endpoint, layout).await?;
    let size = write(&source, staged).await?;
    let revision = source.status.map(|status| status.revision);
    Ok(SavedSnapshot { file, size, member: source.member, revision })
}
