//! What the sessions of one run share.

use std::num::NonZeroUsize;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::cancel::Cancel;

/// The default number of hosts that receive a large payload at the same time: more of them only slow each other down,
/// and their payloads are held in memory.
pub const UPLOADS: NonZeroUsize = NonZeroUsize::new(8).expect("8 is not zero");

/// The size of a large payload, in bytes: for a smaller one, waiting costs more than it saves.
pub const LARGE: usize = 1 << 20;

/// Clones share the same state.
#[derive(Debug, Clone)]
pub struct Share {
    /// Cancels the run.
    pub cancel: Cancel,
    uploads: Arc<Semaphore>,
    limit: NonZeroUsize,
}

impl Share {
    /// For one run.
    pub fn new(cancel: Cancel, uploads: NonZeroUsize) -> Self {
        Self { cancel, uploads: Arc::new(Semaphore::new(uploads.get())), limit: uploads }
    }

    /// An upload slot, if one is free.
    pub fn free_turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.uploads).try_acquire_owned().ok()
    }

    /// The next free upload slot, held until it is dropped.
    pub async fn turn(&self) -> OwnedSemaphorePermit {
        Arc::clone(&self.uploads).acquire_owned().await.expect("the semaphore is never closed")
    }

    /// The number of upload slots.
    pub fn limit(&self) -> NonZeroUsize {
        self.limit
    }
}

impl Default for Share {
    /// For a single host.
    fn default() -> Self {
        Self::new(Cancel::never(), UPLOADS)
    }
}
