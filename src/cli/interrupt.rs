//! Ctrl-C, and what systemd and others send instead of it.

use std::convert::Infallible;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;

use super::failure::{Exit, Failure};
use crate::engine::stop::{Asked, Asker};

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

/// Ends when the command must: by then it was asked as its manner is.
///
/// # Errors
/// When the command was interrupted, or signals cannot be listened to. It never ends well.
pub async fn interrupted(asker: &Asker, manner: Manner) -> Result<Infallible, Failure> {
    let bug = |error: std::io::Error| Failure::from_error(Exit::Bug, &error);
    let mut interrupt = signal(SignalKind::interrupt()).map_err(bug)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(bug)?;
    next(&mut interrupt, &mut terminate).await;
    if manner == Manner::Gradual {
        asker.ask(Asked::AfterResource);
        next(&mut interrupt, &mut terminate).await;
        asker.ask(Asked::Now);
        // The command ends itself before that, unless a host hangs.
        let _elapsed = timeout(GRACE, std::future::pending::<()>()).await;
    }
    Err(Failure::new(Exit::Interrupted, "interrupted").hint("the same command goes on from here"))
}

async fn next(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
