//! How a connection ended.

use std::sync::{Arc, Mutex, PoisonError};

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ended {
    /// The host sent a disconnect message with this reason.
    ByHost(String),
    /// The connection broke.
    Broken(String),
}

/// How a connection ended, once it has; set by the connection's own task.
#[derive(Clone, Default)]
pub(super) struct Ending(Arc<Mutex<Option<Ended>>>);

impl Ending {
    pub(super) fn set(&self, ended: Ended) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
    }

    pub(super) fn get(&self) -> Option<Ended> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
