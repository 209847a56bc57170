//! The turn of an operation on a host: its lock, once the operation that has it has ended.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::engine::cancel::{Cancel, CancelLevel};
use crate::model::event::Event;
use crate::model::name::HostName;
use crate::operation::cluster_site::Workspace;
use crate::workspace::host_lock::{HostLock, HostLockError};

/// Between two attempts.
const PACE: Duration = Duration::from_millis(500);
/// Attempts between two reports.
const REPORT: usize = 20;

/// A turn that has not come yet.
pub struct HostTurn<'a> {
    workspace: &'a Workspace,
    host: &'a HostName,
    limit: Duration,
}

impl<'a> HostTurn<'a> {
    /// Of this host, waited for at most for `limit`.
    pub fn new(workspace: &'a Workspace, host: &'a HostName, limit: Duration) -> Self {
        Self { workspace, host, limit }
    }

    /// Takes the lock.
    ///
    /// # Errors
    /// When another operation still has it at the end, or at a cancellation.
    pub async fn take(&self, cancel: &Cancel) -> Result<HostLock, HostLockError> {
        let began = Instant::now();
        let mut attempt: usize = 0;
        loop {
            let locked = HostLock::acquire(&self.workspace.layout, self.host, (self.workspace.now)());
            let Err(HostLockError::Held { holder, .. }) = &locked else { return locked };
            let elapsed = began.elapsed();
            if elapsed >= self.limit || cancel.level() != CancelLevel::Continue {
                return locked;
            }
            attempt += 1;
            if attempt % REPORT == 1 {
                (self.workspace.report)(Event::Waiting {
                    host: self.host.clone(),
                    condition: "the other operation on this host to end".to_owned(),
                    last_seen: holder.clone(),
                    elapsed,
                });
            }
            tokio::select! {
                () = sleep(PACE) => {}
                () = cancel.reached(CancelLevel::AfterResource) => {}
            }
        }
    }
}
