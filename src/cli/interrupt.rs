//! Ctrl-C, and SIGTERM from systemd and others.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;

use super::failure::{Exit, Failure};
use crate::engine::cancel::{CancelHandle, CancelLevel};
use crate::model::resumption::ResumedBy;

/// How long connections to hosts get to close after the second signal.
const GRACE: Duration = Duration::from_secs(3);

/// What a signal does to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interruption {
    /// The first signal ends the command: it leaves nothing half done, or is resumed by running it again.
    Immediate,
    /// The first signal cancels the command, which finishes what it must; the second ends it.
    Graceful,
}

/// SIGINT and SIGTERM, received from the moment that this is created.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Starts receiving. Must be called within a runtime.
    ///
    /// # Errors
    /// When no handler can be installed.
    pub fn listen() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(|error| Failure::from_error(Exit::Bug, &error));
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    /// Completes when the command must end; until then, cancels it as `interruption` requires. `resumed` is what resumes
    /// the command.
    pub async fn interrupted(
        mut self,
        handle: &CancelHandle,
        interruption: Interruption,
        resumed: ResumedBy,
    ) -> Failure {
        self.next().await;
        if interruption == Interruption::Graceful {
            handle.cancel(CancelLevel::AfterResource);
            self.next().await;
            handle.cancel(CancelLevel::Now);
            // The command completes before that, unless a host hangs.
            let _elapsed = timeout(GRACE, std::future::pending::<()>()).await;
        }
        Failure::new(Exit::Interrupted, "interrupted").hint(resumed.instruction())
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
