//! `etcd save-snapshots`: keeps snapshots of etcd on this machine and on one other host. A timer runs it.

use std::time::Duration;

use super::cluster_nodes::{self, ClusterNodesError};
use super::command_error::{CommandError, ErrorClass};
use super::etcd_snapshot::{self, EtcdSnapshotError};
use super::recorded_nodes;
use super::snapshot_distribution::{Distribution, distribute, remove_surplus};
use super::snapshot_host::SnapshotHostError;
use super::snapshot_nodes::{SnapshotAccess, hosts, this_host};
use super::workspace::{WorkspaceError, configuration};
use crate::engine::wait::{WaitStatus, wait_for};
use crate::etcd::snapshot_copies::COPIES;
use crate::etcd::snapshot_name::SnapshotName;
use crate::model::error_chain::error_chain;
use crate::model::name::HostName;
use crate::workspace::atomic_file::{FileError, StagedFile};
use crate::workspace::layout::Layout;
use crate::workspace::snapshot_directory::{SnapshotDirectory, SnapshotDirectoryError};

/// A snapshot that was saved, and where it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptSnapshot {
    /// Its file name.
    pub name: SnapshotName,
    /// Bytes.
    pub size: u64,
    /// The member that sent it.
    pub member: String,
    /// The hosts with a copy, this machine included.
    pub hosts: Vec<HostName>,
    /// What is to be looked after although the command succeeded; one line each.
    pub warnings: Vec<String>,
}

/// Why there is no new snapshot on two hosts.
#[derive(Debug, thiserror::Error)]
pub enum SaveSnapshotsError {
    /// The configuration, this machine's name or the SSH options cannot be used.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// Another process saves one, or the directory cannot be used.
    #[error(transparent)]
    Directory(#[from] SnapshotDirectoryError),
    /// The file system has too little space.
    #[error("{free} bytes are free in {directory}, less than twice the {size} bytes of the database")]
    Space {
        /// Of the snapshots.
        directory: String,
        /// Bytes.
        free: u64,
        /// Bytes.
        size: u64,
    },
    /// None was taken.
    #[error(transparent)]
    Snapshot(#[from] EtcdSnapshotError),
    /// The snapshots of this machine cannot be listed.
    #[error("{}", error_chain(.0))]
    Local(#[from] SnapshotHostError),
    /// The file was damaged after it was written.
    #[error("{0} was written, and is damaged when it is read")]
    Damaged(SnapshotName),
    /// The Nodes are not known, so this machine has the only copy.
    #[error("{name} is on this machine only: {error}")]
    NodesUnknown {
        /// Of the snapshot.
        name: SnapshotName,
        /// Why.
        error: ClusterNodesError,
    },
    /// No other host took a copy.
    #[error("{name} is on this machine only; {}", warnings.join("; "))]
    OneCopy {
        /// Of the snapshot.
        name: SnapshotName,
        /// Why others did not take it; one line each.
        warnings: Vec<String>,
    },
}

impl CommandError for SaveSnapshotsError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Workspace(error) => error.class(),
            Self::Directory(SnapshotDirectoryError::Held(_)) => ErrorClass::Refused,
            Self::Snapshot(error) => error.class(),
            Self::NodesUnknown { error, .. } => error.class(),
            Self::Directory(_) | Self::Space { .. } | Self::Local(_) | Self::Damaged(_) => ErrorClass::Host,
            Self::OneCopy { .. } => ErrorClass::Host,
        }
    }

    fn errors(&self) -> Vec<String> {
        match self {
            Self::Workspace(error) => error.errors(),
            Self::Snapshot(error) => error.errors(),
            Self::OneCopy { name, warnings } => {
                let first = format!("{name} is on this machine only");
                std::iter::once(first).chain(warnings.iter().cloned()).collect()
            }
            _ => vec![self.to_string()],
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Workspace(error) => error.hints(),
            Self::Snapshot(error) => error.hints(),
            Self::NodesUnknown { error, .. } => error.hints(),
            Self::OneCopy { .. } => {
                vec!["`metalform node check NAME` tests the connection to a host".to_owned()]
            }
            Self::Space { .. } => {
                vec![
                    "free some space, or keep fewer: etcd.snapshots.keep in /etc/metalform/bootstrap.yaml"
                        .to_owned(),
                ]
            }
            Self::Directory(_) | Self::Local(_) | Self::Damaged(_) => Vec::new(),
        }
    }
}

/// Takes a snapshot, copies it to another host and removes the oldest ones. Copies that are missing or damaged are made
/// again. etcd and the API may need `patience` to start.
///
/// # Errors
/// When none was taken, or another host exists and none has a copy of it. What was taken is kept in any case.
pub async fn save_snapshots(
    access: &SnapshotAccess,
    patience: Duration,
) -> Result<KeptSnapshot, SaveSnapshotsError> {
    let layout = &access.layout;
    let local = this_host(layout)?;
    let keep = configuration(layout)?.etcd_snapshots.keep;
    let directory = SnapshotDirectory::acquire(layout)?;
    // What does not answer by then is an error of its own below.
    let _late = wait_for("etcd and the API to answer", patience, || answer(layout)).await;
    let source = etcd_snapshot::source(None, layout).await?;
    let (revision, expected) = source.status.as_ref().map_or((0, 0), |one| (one.revision, one.db_size));
    let keep = usize::try_from(keep).unwrap_or(usize::MAX);
    let name = SnapshotName::new((access.clock)(), u64::try_from(revision).unwrap_or_default());
    let free_space = || directory.free_space().map_err(SnapshotDirectoryError::File);
    // etcd may write to the same file system: half of what is free is left to it.
    let is_short = |free: u64| free / 2 < expected;
    if is_short(free_space()?) {
        // Fewer may be kept than when the last one was taken.
        let hosts = hosts(access, this_host(layout)?).await.map_err(WorkspaceError::from)?;
        let warnings = remove_surplus(&hosts, &name, keep).await?;
        let free = free_space()?;
        if is_short(free) {
            warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
            let directory = directory.path().display().to_string();
            return Err(SaveSnapshotsError::Space { directory, free, size: expected });
        }
    }
    let staged = stage(&directory, &name).map_err(EtcdSnapshotError::File)?;
    let size = etcd_snapshot::write(&source, staged).await?;
    // A recovery needs them as well, with what people have changed of them since the last operation.
    recorded_nodes::record(layout).await;

    let hosts = hosts(access, local).await.map_err(WorkspaceError::from)?;
    let Distribution { copies, mut warnings } = distribute(&hosts, &name, keep).await?;
    let holders: Vec<HostName> = copies.holders(&name).cloned().collect();
    if !holders.contains(&hosts.local.name) {
        return Err(SaveSnapshotsError::Damaged(name));
    }
    if holders.len() < COPIES {
        if let Some(error) = hosts.unlisted {
            return Err(SaveSnapshotsError::NodesUnknown { name, error });
        }
        if !(hosts.others.is_empty() && hosts.faults.is_empty()) {
            return Err(SaveSnapshotsError::OneCopy { name, warnings });
        }
        warnings.push("the cluster has one node only, and no second copy of its snapshots".to_owned());
    }
    Ok(KeptSnapshot { name, size, member: source.member, hosts: holders, warnings })
}

async fn answer(layout: &Layout) -> WaitStatus<()> {
    if let Err(error) = etcd_snapshot::source(None, layout).await {
        return WaitStatus::NotYet(error.to_string());
    }
    match cluster_nodes::list(layout).await {
        Ok(_) => WaitStatus::Holds(()),
        Err(error) => WaitStatus::NotYet(error.to_string()),
    }
}

fn stage(directory: &SnapshotDirectory, name: &SnapshotName) -> Result<StagedFile, FileError> {
    StagedFile::new(&directory.path().join(name.to_string()), 0o600)
}
