//! The part of an artefact that was received, in the cache, so that a later request resumes it.
//!
//! # Guarantees
//! A file is resumed only with the validator of the response that it began with (RFC 9110, section 13.1.5): the
//! server sends the rest of the same content, or all of another one.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::bundle::digest::Sha256;

/// Prefix of the names of partial files and their records in the cache.
pub(in crate::bundle) const PREFIX: &str = ".partial-";

/// An incomplete file and the record of its origin.
pub(super) struct PartialFile {
    path: PathBuf,
    record_path: PathBuf,
    file: File,
    length: u64,
    record: Option<Record>,
    is_resumed: bool,
}

/// What a response announced of the whole file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// Strong `ETag`, or `Last-Modified`, as received.
    pub(super) validator: String,
    /// In bytes.
    pub(super) size: Option<u64>,
}

impl PartialFile {
    /// What an earlier build has received, or an empty file. Its name is derived from the URL and the digest; a second
    /// download of the same artefact at the same time has a file of its own.
    ///
    /// # Errors
    /// When the directory cannot be written.
    pub(super) fn open(directory: &Path, url: &str, expected: &Sha256) -> io::Result<Self> {
        let name = format!("{PREFIX}{}", Sha256::of(format!("{expected} {url}").as_bytes()));
        let mut number = 0;
        loop {
            let path = directory.join(format!("{name}-{number}"));
            let file = File::options().append(true).create(true).open(&path)?;
            match file.try_lock() {
                Ok(()) => return Self::locked(path, file),
                Err(TryLockError::WouldBlock) => number += 1,
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    fn locked(path: PathBuf, file: File) -> io::Result<Self> {
        let record_path = path.with_extension("json");
        let record = fs::read(&record_path).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let length = file.metadata()?.len();
        Ok(Self { path, record_path, file, length, record, is_resumed: length > 0 })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// In bytes.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// In bytes, if the server has announced it.
    pub(super) fn size(&self) -> Option<u64> {
        self.record.as_ref().and_then(|record| record.size)
    }

    /// Whether the content is of more than one response.
    pub(super) fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// Whether no byte is missing.
    pub(super) fn is_whole(&self) -> bool {
        self.size() == Some(self.length)
    }

    /// The position to resume at, and the validator.
    pub(super) fn resumption(&self) -> Option<(u64, &str)> {
        let record = self.record.as_ref().filter(|_| self.length > 0)?;
        Some((self.length, &record.validator))
    }

    /// The next bytes are of another response than those before.
    pub(super) fn resume(&mut self) {
        self.is_resumed = true;
    }

    /// Drops the content; the next bytes are the first ones of a response.
    ///
    /// # Errors
    /// From the operating system.
    pub(super) fn restart(&mut self, record: Option<Record>) -> io::Result<()> {
        self.file.set_len(0)?;
        (self.length, self.is_resumed) = (0, false);
        match &record {
            Some(record) => fs::write(&self.record_path, serde_json::to_vec(record)?)?,
            None => remove(&self.record_path)?,
        }
        self.record = record;
        Ok(())
    }

    /// # Errors
    /// From the operating system: a full disk.
    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Moves the complete file to its place, which must be on the same file system.
    ///
    /// # Errors
    /// From the operating system.
    pub(super) fn keep(&self, place: &Path) -> io::Result<()> {
        remove(&self.record_path)?;
        fs::rename(&self.path, place)
    }

    /// # Errors
    /// From the operating system.
    pub(super) fn remove(&self) -> io::Result<()> {
        remove(&self.record_path)?;
        remove(&self.path)
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::sweep::sweep;

    #[test]
    fn a_file_is_resumed_only_as_what_it_began_as() {
        let directory = tempfile::tempdir().unwrap();
        let digest = Sha256::of(b"whole");
        let open = |url: &str| PartialFile::open(directory.path(), url, &digest).unwrap();
        let record = |size| Record { validator: "\"a\"".to_owned(), size };

        let mut file = open("https://a.example/tool");
        assert_eq!((file.resumption(), file.is_resumed(), file.is_whole()), (None, false, false));
        file.restart(Some(record(Some(5)))).unwrap();
        file.append(b"who").unwrap();
        assert_eq!(
            (file.resumption(), file.is_resumed(), file.is_whole()),
            (Some((3, "\"a\"")), false, false)
        );
        drop(file);

        let mut file = open("https://a.example/tool");
        assert_eq!((file.resumption(), file.is_resumed()), (Some((3, "\"a\"")), true));
        file.append(b"le").unwrap();
        assert!(file.is_whole());
        assert_eq!(open("https://b.example/tool").resumption(), None, "another source is another file");
        assert_eq!(open("https://a.example/tool").resumption(), None, "the file is in use");

        // A server without validators: what is there is of no use.
        file.restart(None).unwrap();
        file.append(b"wh").unwrap();
        assert_eq!((file.resumption(), file.is_resumed(), file.is_whole()), (None, false, false));
        drop(file);
        let mut file = open("https://a.example/tool");
        assert_eq!((file.resumption(), file.length()), (None, 2));

        // Killed while the record was written.
        file.restart(Some(record(None))).unwrap();
        file.append(b"wh").unwrap();
        fs::write(&file.record_path, "{\"valid").unwrap();
        drop(file);
        let file = open("https://a.example/tool");
        assert_eq!((file.resumption(), file.length()), (None, 2));

        file.remove().unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "the other two");
        sweep(directory.path(), PREFIX).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
