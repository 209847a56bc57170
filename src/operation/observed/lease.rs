//! The lease on etcd membership.

use std::time::Duration;

/// Who holds the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseView {
    /// This run, which renews it.
    Ours,
    /// No holder, or one that has not renewed it in time.
    Free,
    /// Another process.
    Held {
        /// `HOST/PID/NODE`.
        holder: String,
        /// Since it was last renewed.
        renewed: Duration,
    },
}
