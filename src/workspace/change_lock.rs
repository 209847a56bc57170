//! The lock on the changes of one host: plans are carried out on it one after the other.
//!
//! An operation has its own host to itself by the [`HostLock`](super::host_lock::HostLock); but it also updates the API
//! server proxies of others. Side by side, one would observe what the other has written and not reloaded yet.

use std::fs::File;

use super::atomic_file::FileError;
use super::host_lock;
use super::layout::Layout;
use crate::model::name::HostName;

/// Held until it is dropped; a process that ends in any way holds nothing, as it is a flock(2).
#[derive(Debug)]
pub struct ChangeLock(#[expect(dead_code, reason = "closing it releases the lock")] File);

impl ChangeLock {
    /// Takes it, unless another plan is carried out on this host, also one of this process.
    ///
    /// # Errors
    /// When the lock file cannot be used.
    pub fn try_acquire(layout: &Layout, host: &HostName) -> Result<Option<Self>, FileError> {
        Ok(host_lock::try_lock(&layout.change_lock(host))?.map(Self))
    }
}
