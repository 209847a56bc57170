//! Ctrl-C, and what systemd and others send instead of it.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;

use super::failure::{Exit, Failure};
use crate::engine::cancel::{CancelHandle, CancelLevel};

/// How long hosts have, once all shall stop at once, until their connections are closed.
const GRACE: Duration = Duration::from_secs(3);

/// What a signal means to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// The command ends; the connections to hosts with it.
    AtOnce,
    /// The first one asks the command to come to an end by itself, the second one ends it.
    Gradual,
}

/// The signals, listened to from the moment that this is made.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Within a runtime.
    ///
    /// # Errors
    /// When signals cannot be listened to.
    pub fn listen() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(|error| Failure::from_error(Exit::Bug, &error));
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    /// Ends when the command must: by then it was asked as its manner is.
    pub async fn interrupted(mut self, asker: &CancelHandle, manner: Manner) -> Failure {
        self.next().await;
        if manner == Manner::Gradual {
            asker.cancel(CancelLevel::AfterResource);
            self.next().await;
            asker.cancel(CancelLevel::Now);
            // The command ends itself before that, unless a host hangs.
            let _elapsed = timeout(GRACE, std::future::pending::<()>()).await;
        }
        Failure::new(Exit::Interrupted, "interrupted").hint("the same command goes on from here")
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
