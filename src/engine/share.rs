//! What the hosts of one run share.

use std::num::NonZeroUsize;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::stop::Stop;

/// Hosts that receive a large payload at the same time where nothing else is said: more of them only make
/// each one slower, and what they wait for holds memory here.
pub const UPLOADS: NonZeroUsize = NonZeroUsize::new(8).expect("8 is not zero");

/// A payload is large from here on, bytes: below, waiting for a turn costs more than it saves.
pub const LARGE: usize = 1 << 20;

/// A clone shares the same.
#[derive(Debug, Clone)]
pub struct Share {
    /// Whether the run shall stop.
    pub stop: Stop,
    uploads: Arc<Semaphore>,
    limit: NonZeroUsize,
}

impl Share {
    /// Of one run.
    pub fn new(stop: Stop, uploads: NonZeroUsize) -> Self {
        Self { stop, uploads: Arc::new(Semaphore::new(uploads.get())), limit: uploads }
    }

    /// A turn to upload, when one is free at once.
    pub fn free_turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.uploads).try_acquire_owned().ok()
    }

    /// The next turn to upload. Held until it is dropped.
    pub async fn turn(&self) -> OwnedSemaphorePermit {
        Arc::clone(&self.uploads)
            .acquire_owned()
            .await
            .expect("a turn is to be had, because the semaphore is never closed")
    }

    /// How many hosts upload at the same time, at most.
    pub fn limit(&self) -> NonZeroUsize {
        self.limit
    }
}

impl Default for Share {
    /// Of a host by itself.
    fn default() -> Self {
        Self::new(Stop::never(), UPLOADS)
    }
}
