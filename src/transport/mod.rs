//! Running programs on a host: over SSH, locally, or in a fake.
//!
//! [`pool::ConnectionPool`] makes every connection of a run.

pub mod capture;
pub mod error;
pub mod fake;
pub mod held_key;
pub mod host_keys;
pub mod known_hosts;
pub mod local;
pub mod pool;
pub mod secret;
pub mod shell;
pub mod ssh;
pub mod sudo;

use async_trait::async_trait;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use self::error::TransportError;

/// A script for the host's POSIX shell, and the bytes it reads from its standard input.
///
/// The shell runs the script with `eval`, so its length has no limit, and its standard input is exactly `payload`.
/// The script runs only when all of it has arrived. The payload has no such guard: when the connection breaks,
/// standard input just ends early, so a script that stores what it reads must verify its size or digest before it
/// puts it in place.
///
/// A run ends when no process holds its standard output open: what a script leaves in the background must have its
/// output redirected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Shell text, run as root (with sudo where the target requires it).
    pub script: String,
    /// Follows the script on the same stream.
    pub payload: Vec<u8>,
}

/// The result of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Exit status; 128 + n when signal n ended it.
    pub status: i32,
    /// All of standard output.
    pub stdout: Vec<u8>,
    /// All of standard error.
    pub stderr: Vec<u8>,
}

/// Receives standard output as it arrives, in whole lines and without their line breaks.
///
/// A type of its own because `async_trait` would tie the lifetime of the lines to that of the whole run.
pub type LineSink<'a> = dyn FnMut(&str) + Send + 'a;

/// What a running program reads from its standard input after its payload. The input ends when the sender is
/// dropped.
pub type Replies = UnboundedReceiver<Vec<u8>>;

/// Standard input of a program, after its script.
struct Input<'a> {
    payload: &'a [u8],
    replies: Replies,
}

/// Runs programs on one host.
///
/// Dropping a run gives it up: its channel is closed, and the program ends when it next writes.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Runs a program to its end. The program can be replied to while it runs: `lines` receives what it prints, and the
    /// sender of `replies` provides what it reads next.
    ///
    /// # Errors
    /// Only when the host was not reached or the connection broke; a program that fails is an [`Output`].
    async fn converse(
        &self,
        program: &Program,
        replies: Replies,
        lines: &mut LineSink<'_>,
    ) -> Result<Output, TransportError>;

    /// Runs a program to its end that reads only its payload.
    ///
    /// # Errors
    /// As [`Transport::converse`].
    async fn run(&self, program: &Program, lines: &mut LineSink<'_>) -> Result<Output, TransportError> {
        let (_, nothing) = unbounded_channel();
        self.converse(program, nothing, lines).await
    }
}
