//! Noticing that files were replaced.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Identity of the present content of some files, as far as the file system tells: device, inode, size and time
/// of change. Equal versions have equal content, since files of metalform are replaced and never rewritten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileVersion(Vec<Option<Identity>>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    /// Seconds and nanoseconds.
    changed: (i64, i64),
}

impl FileVersion {
    /// Of these files; one that does not exist is a version too.
    pub fn of(files: &[&Path]) -> Self {
        let version = |file: &&Path| {
            let metadata = fs::metadata(file).ok()?;
            Some(Identity {
                device: metadata.dev(),
                inode: metadata.ino(),
                size: metadata.size(),
                changed: (metadata.ctime(), metadata.ctime_nsec()),
            })
        };
        Self(files.iter().map(version).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::atomic_file;

    #[test]
    fn a_replaced_file_is_another_version() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("file");
        let absent = FileVersion::of(&[&path]);
        atomic_file::write(&path, b"1", 0o644).unwrap();
        let first = FileVersion::of(&[&path]);
        assert_ne!(first, absent);
        assert_eq!(first, FileVersion::of(&[&path]));
        atomic_file::write(&path, b"1", 0o644).unwrap();
        assert_ne!(first, FileVersion::of(&[&path]));
    }
}
