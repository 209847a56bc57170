//! The directory of the snapshots that metalform keeps, for the one process that adds to it.
//!
//! # Guarantees
//! - Mode 0700: a snapshot contains every Secret of the cluster.
//! - One process of this machine at a time has it; it is not waited for. The lock is a flock(2) on the directory, so
//!   that no file remains and a process that is killed holds nothing.
//! - What processes that were killed had begun to write is gone.

use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::atomic_file::{self, FileError};
use super::layout::Layout;

/// Held until it is dropped.
#[derive(Debug)]
pub struct SnapshotDirectory {
    path: PathBuf,
    #[expect(dead_code, reason = "closing it releases the lock")]
    lock: File,
}

/// Why a process may not add to the directory.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotDirectoryError {
    /// Another process has it.
    #[error("another process is saving a snapshot to {}", .0.display())]
    Held(PathBuf),
    /// It cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
}

impl SnapshotDirectory {
    /// Creates the directory where it does not exist, and takes it for this process.
    ///
    /// # Errors
    /// When another process has it, or it cannot be written.
    pub fn acquire(layout: &Layout) -> Result<Self, SnapshotDirectoryError> {
        let path = layout.etcd_snapshots();
        let failed = |reason| FileError { path: path.clone(), reason };
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(failed)?;
        fs::set_permissions(&path, Permissions::from_mode(0o700)).map_err(failed)?;
        let lock = File::open(&path).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(SnapshotDirectoryError::Held(path)),
            Err(TryLockError::Error(reason)) => return Err(failed(reason).into()),
        }
        for entry in fs::read_dir(&path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name().to_string_lossy().starts_with(atomic_file::STAGED) {
                atomic_file::remove(&entry.path())?;
            }
        }
        Ok(Self { path, lock })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes that can still be written.
    ///
    /// # Errors
    /// From the operating system.
    pub fn free_space(&self) -> Result<u64, FileError> {
        let failed = |reason: rustix::io::Errno| FileError { path: self.path.clone(), reason: reason.into() };
        let space = rustix::fs::statvfs(&self.path).map_err(failed)?;
        Ok(space.f_bavail.saturating_mul(space.f_frsize))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn one_process_at_a_time_adds_and_finds_nothing_that_was_only_begun() {
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::below(root.path());
        fs::create_dir_all(layout.etcd_snapshots()).unwrap();
        for name in [".metalform-Ab12", "etcd-20261123T045830Z-769.db", "own.db"] {
            fs::write(layout.etcd_snapshots().join(name), "content").unwrap();
        }
        let held = SnapshotDirectory::acquire(&layout).unwrap();
        assert_eq!(fs::metadata(held.path()).unwrap().mode() & 0o7777, 0o700);
        let mut left: Vec<_> =
            fs::read_dir(held.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["etcd-20261123T045830Z-769.db", "own.db"]);
        assert!(held.free_space().unwrap() > 0);
        assert!(matches!(SnapshotDirectory::acquire(&layout), Err(SnapshotDirectoryError::Held(_))));
        drop(held);
        SnapshotDirectory::acquire(&layout).unwrap();
    }
}
