//! The lock on one host: operations on it follow each other.
//!
//! # Guarantees
//! - One process of this machine at a time has it; it is not waited for.
//! - It is a flock(2), so that a process that ends in any way holds nothing. The file remains and means nothing.
//! - The process that is named is the one that has the lock, by the kernel's word: what the file says may be of the
//!   operation before.
//!
//! # Caveats
//! Operations start on the bootstrap node, so a lock there is enough, and costs a host no round trip. What an operation
//! does on other hosts, the update of their API server proxies, does not take their locks: two nodes that are deployed
//! side by side would wait for each other. Its turn on them is a [`ChangeLock`](super::change_lock::ChangeLock).

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use jiff::Timestamp;

use super::atomic_file::FileError;
use super::layout::Layout;
use super::operation_log;
use crate::model::name::HostName;
use crate::model::resumption::ResumedBy;

/// Of the list of locks, at most.
const READINGS: usize = 3;

/// Held until it is dropped.
#[derive(Debug)]
pub struct HostLock(#[expect(dead_code, reason = "closing it releases the lock")] File);

/// Why an operation may not begin on a host.
#[derive(Debug, thiserror::Error)]
pub enum HostLockError {
    /// Another operation is running.
    #[error("{host}: another operation is running on this host: {holder}")]
    Held {
        /// The host.
        host: HostName,
        /// `process 4711, since 2026-11-22T02:00:00Z: metalform deploy-node node-2, by root`.
        holder: String,
        /// The id of its record, where it has one.
        record: Option<String>,
    },
    /// The lock file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
}

impl HostLockError {
    /// What to do about it, for an operation that is resumed so.
    pub fn hint(&self, resumed: ResumedBy) -> Option<String> {
        let Self::Held { record, .. } = self else { return None };
        let shown = match record {
            Some(id) => format!("`metalform operations follow {id}` shows it"),
            // Controllers of Machines have no record.
            None => "`metalform operations list` shows it; where it is of a Machine, `journalctl -u \
                     metalform-machine-controller`"
                .to_owned(),
        };
        let next = match resumed {
            ResumedBy::SameCommand => "run the same command again, or add --wait SECONDS".to_owned(),
            _ => resumed.instruction(),
        };
        Some(format!("{shown}; when it has ended, {next}"))
    }
}

impl HostLock {
    /// Takes it for this process.
    ///
    /// # Errors
    /// When another operation has it, also one of this process.
    pub fn acquire(layout: &Layout, host: &HostName, now: Timestamp) -> Result<Self, HostLockError> {
        let path = layout.host_lock(host);
        let failed = |reason| FileError { path: path.clone(), reason };
        let mut file = open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let (holder, record) = holder(layout, &mut file);
                return Err(HostLockError::Held { host: host.clone(), holder, record });
            }
            Err(TryLockError::Error(reason)) => return Err(failed(reason).into()),
        }
        let text = format!("process {}, since {now:.0}\n", std::process::id());
        file.set_len(0).and_then(|()| file.write_all(text.as_bytes())).map_err(failed)?;
        Ok(Self(file))
    }
}

/// Opens a lock file. It is created if it does not exist, with its directory.
fn open(path: &Path) -> std::io::Result<File> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    // Not truncated: until it is locked its content is another process's.
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

/// Opens and locks a file, unless it is locked by another process or by this one.
pub(super) fn try_lock(path: &Path) -> Result<Option<File>, FileError> {
    let failed = |reason| FileError { path: path.to_owned(), reason };
    let file = open(path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(reason)) => Err(failed(reason)),
    }
}

/// The process that has the lock, and what it wrote, which it may not have done yet; and the id of its record.
fn holder(layout: &Layout, file: &mut File) -> (String, Option<String>) {
    let inode = file.metadata().ok().map(|metadata| metadata.ino());
    // While other locks come and go, a reading of the list may lack one.
    let process = (0..READINGS).find_map(|_| {
        let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
        process_with_lock(&locks, inode?)
    });
    let mut text = String::new();
    let _unreadable_is_empty = file.read_to_string(&mut text);
    let Some(process) = process else { return ("a process that has just ended".to_owned(), None) };
    let since = match text.trim() {
        text if text.starts_with(&format!("process {process},")) => text.to_owned(),
        _ => format!("process {process}, which has just begun"),
    };
    match operation_log::running(layout, process) {
        Some(begun) => (format!("{since}: {}, by {}", begun.command_line(), begun.user), Some(begun.id)),
        None => (since, None),
    }
}

/// The process that has a flock(2) on this inode, by `/proc/locks`, proc_locks(5). Those that wait for one are marked
/// by an arrow, which moves the words.
fn process_with_lock(locks: &str, inode: u64) -> Option<u32> {
    locks.lines().find_map(|line| {
        let words = line.split_whitespace().collect::<Vec<_>>();
        let [_, "FLOCK", _, _, process, file, ..] = words[..] else { return None };
        (file.rsplit(':').next() == Some(&inode.to_string())).then(|| process.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::operation_record::OperationBegun;
    use crate::workspace::operation_log::OperationLog;

    const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

    #[test]
    fn one_operation_at_a_time_has_a_host_and_the_other_learns_which() {
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::below(root.path());
        let (one, other): (HostName, HostName) = ("node-1".parse().unwrap(), "node-2".parse().unwrap());
        let held = HostLock::acquire(&layout, &one, NOW).unwrap();
        let refusal = || HostLock::acquire(&layout, &one, NOW).unwrap_err();
        let refused = || refusal().to_string();
        let holder =
            format!("node-1: another operation is running on this host: process {}, ", std::process::id());
        assert_eq!(refused(), format!("{holder}since 2027-01-15T08:00:00Z"));
        let hint = refusal().hint(ResumedBy::SameCommand).unwrap();
        assert!(hint.contains("journalctl -u metalform-machine-controller"), "{hint}");
        let begun = OperationBegun {
            id: format!("20270115T075900Z-{}", std::process::id()),
            time: NOW,
            command: vec!["metalform".to_owned(), "expand".to_owned()],
            user: "anna".to_owned(),
            process: std::process::id(),
            version: String::new(),
        };
        let log = OperationLog::begin(&layout, begun).unwrap();
        assert_eq!(refused(), format!("{holder}since 2027-01-15T08:00:00Z: metalform expand, by anna"));
        let hint = refusal().hint(ResumedBy::SameCommand).unwrap();
        let follow =
            format!("`metalform operations follow 20270115T075900Z-{}` shows it", std::process::id());
        assert!(hint.starts_with(&follow), "{hint}");
        // What would be run after a restoration must not be the restoration.
        let hint = refusal().hint(ResumedBy::Expansion).unwrap();
        assert!(hint.contains("has ended, run `metalform expand`"), "{hint}");
        drop(log);
        fs::write(layout.host_lock(&one), "process 1, since 2027-01-15T07:00:00Z\n").unwrap();
        assert_eq!(refused(), format!("{holder}which has just begun"), "what an operation before it left");
        let _beside = HostLock::acquire(&layout, &other, NOW).unwrap();
        drop(held);
        HostLock::acquire(&layout, &one, NOW).unwrap();
    }

    #[test]
    fn only_who_has_a_flock_on_this_very_file_is_named() {
        let locks = "1: POSIX  ADVISORY  WRITE 11 fe:00:77 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 12 fe:00:777 0 EOF\n\
                     3: -> FLOCK  ADVISORY  WRITE 13 fe:00:77 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE 14 fe:00:77 0 EOF\n";
        assert_eq!(process_with_lock(locks, 77), Some(14));
        assert_eq!(process_with_lock(locks, 7), None);
    }
}
