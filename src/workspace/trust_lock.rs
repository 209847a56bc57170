//! The lock on the keys of the cluster: `metalform serve`, the signer and any number of commands use them at once.
//!
//! # Guarantees
//! - A reader sees the files before or after a creation, never in between; two creations follow each other.
//! - It is a flock(2) on the directory of the CAs, so that no file remains and a process that is killed holds nothing.
//! - Held only while files are read or written: waiting for it takes milliseconds.

use std::fs::{self, File};
use std::io;

use super::atomic_file::FileError;
use super::layout::Layout;

/// Held until it is dropped.
#[derive(Debug)]
pub(super) struct TrustLock(#[expect(dead_code, reason = "closing it releases the lock")] File);

impl TrustLock {
    /// For reading, beside other readers; `None` where the directory does not exist, so that nothing can be read.
    pub(super) fn shared(layout: &Layout) -> Result<Option<Self>, FileError> {
        let path = layout.pki();
        let directory = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened,
        };
        let locked = directory.and_then(|directory| directory.lock_shared().map(|()| directory));
        locked.map(|directory| Some(Self(directory))).map_err(|reason| FileError { path, reason })
    }

    /// For creating, alone. A missing directory is created.
    pub(super) fn exclusive(layout: &Layout) -> Result<Self, FileError> {
        let path = layout.pki();
        let directory = fs::create_dir_all(&path).and_then(|()| File::open(&path));
        let locked = directory.and_then(|directory| directory.lock().map(|()| directory));
        locked.map(Self).map_err(|reason| FileError { path, reason })
    }
}
