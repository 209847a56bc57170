//! The file of a snapshot of etcd, known to be whole.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::command_error::{CommandError, ErrorClass};
use crate::etcd::snapshot::{DamagedSnapshot, SnapshotCheck};
use crate::etcd::snapshot_name::SnapshotName;

/// A snapshot that is whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotFile {
    /// The file.
    pub file: PathBuf,
    /// Its size, bytes.
    pub size: u64,
    /// When it was taken.
    pub age: SnapshotAge,
}

/// When a snapshot was taken, as far as its file shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnapshotAge {
    /// By its name.
    Named(SnapshotName),
    /// It has another name. A copy may be newer than the snapshot.
    Modified(Timestamp),
}

impl fmt::Display for SnapshotAge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => {
                write!(f, "taken {:.0}, revision {} or later", name.time(), name.revision())
            }
            Self::Modified(time) => {
                write!(f, "the file was last modified {time:.0}; when the snapshot was taken is not known")
            }
        }
    }
}

/// Why a snapshot cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotFileError {
    /// The file cannot be read.
    #[error("{}: {error}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// It is not what a member sent.
    #[error("{}: {error}", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        error: DamagedSnapshot,
    },
}

impl CommandError for SnapshotFileError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Unreadable { .. } => ErrorClass::Configuration,
            Self::Damaged { .. } => ErrorClass::Host,
        }
    }

    fn errors(&self) -> Vec<String> {
        vec![self.to_string()]
    }

    fn hints(&self) -> Vec<String> {
        vec!["name a file that `metalform etcd snapshot` has saved, or one that `metalform etcd snapshots` lists".to_owned()]
    }
}

/// Reads the file, and checks its hash and that it can be opened.
///
/// # Errors
/// When it cannot be read, or is not whole.
pub fn open(file: &Path) -> Result<SnapshotFile, SnapshotFileError> {
    let unreadable = |error| SnapshotFileError::Unreadable { file: file.to_owned(), error };
    let mut reading = File::open(file).map_err(unreadable)?;
    let mut check = SnapshotCheck::default();
    let mut part = vec![0; 1 << 16];
    loop {
        match reading.read(&mut part).map_err(unreadable)? {
            0 => break,
            length => check.put(&part[..length]),
        }
    }
    let size = check.finish().map_err(|error| SnapshotFileError::Damaged { file: file.to_owned(), error })?;
    let name: Option<SnapshotName> =
        file.file_name().and_then(OsStr::to_str).and_then(|name| name.parse().ok());
    let age = match name {
        Some(name) => SnapshotAge::Named(name),
        None => {
            let modified = reading.metadata().and_then(|metadata| metadata.modified()).map_err(unreadable)?;
            let modified = Timestamp::try_from(modified);
            SnapshotAge::Modified(modified.map_err(|error| unreadable(io::Error::other(error)))?)
        }
    };
    Ok(SnapshotFile { file: file.to_owned(), size, age })
}

impl SnapshotFile {
    /// All of it.
    ///
    /// # Errors
    /// When it cannot be read any more.
    pub fn read(&self) -> Result<Vec<u8>, SnapshotFileError> {
        std::fs::read(&self.file)
            .map_err(|error| SnapshotFileError::Unreadable { file: self.file.clone(), error })
    }
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::*;
    use crate::etcd::database_file::example::database;

    #[test]
    fn the_name_of_a_snapshot_dates_it_and_not_the_time_of_its_copy() {
        let directory = tempfile::tempdir().unwrap();
        let mut whole = database(25);
        whole.extend(Sha256::digest(&whole));
        for (name, expected) in [
            ("etcd-20261120T000000Z-769.db", "taken 2026-11-20T00:00:00Z, revision 769 or later"),
            (
                "before-upgrade.db",
                "the file was last modified 2026-11-23T04:58:30Z; when the snapshot was taken is not known",
            ),
        ] {
            let path = directory.path().join(name);
            std::fs::write(&path, &whole).unwrap();
            let copied: Timestamp = "2026-11-23T04:58:30Z".parse().unwrap();
            File::options().write(true).open(&path).unwrap().set_modified(copied.into()).unwrap();
            assert_eq!(open(&path).unwrap().age.to_string(), expected);
        }
    }

    #[test]
    fn only_a_whole_snapshot_is_opened() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("etcd.db");
        assert!(matches!(open(&file), Err(SnapshotFileError::Unreadable { .. })));
        let mut whole = database(25);
        whole.extend(Sha256::digest(&whole));
        std::fs::write(&file, &whole).unwrap();
        let opened = open(&file).unwrap();
        assert_eq!((opened.size, opened.read().unwrap()), (whole.len() as u64, whole.clone()));
        whole[70_000] ^= 1;
        std::fs::write(&file, &whole).unwrap();
        assert!(matches!(open(&file), Err(SnapshotFileError::Damaged { .. })));
    }
}
