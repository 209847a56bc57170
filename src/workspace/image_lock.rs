//! The lock on changes of the registry's images: what is uploaded, and not named by a tag yet, must not be removed as
//! unreferenced.

use std::fs::File;

use super::atomic_file::FileError;
use super::host_lock;
use super::layout::Layout;

/// Held until it is dropped; a process that ends in any way holds nothing, as it is a flock(2).
#[derive(Debug)]
pub struct ImageLock(#[expect(dead_code, reason = "closing it releases the lock")] File);

impl ImageLock {
    /// Takes it, unless another process changes images.
    ///
    /// # Errors
    /// When the lock file cannot be used.
    pub fn try_acquire(layout: &Layout) -> Result<Option<Self>, FileError> {
        Ok(host_lock::try_lock(&layout.image_lock())?.map(Self))
    }
}
