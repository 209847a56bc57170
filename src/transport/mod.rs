//! How a program reaches a host: over SSH, locally, or in a fake.

pub mod capture;
pub mod error;
pub mod fake;
pub mod known_hosts;
pub mod local;
pub mod secret;
pub mod shell;
pub mod ssh;
pub mod sudo;

use async_trait::async_trait;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use self::error::TransportError;

/// A program for the host's POSIX shell, and the bytes it reads from its standard input.
///
/// The shell gets the text by `eval`, so its length has no limit, and finds exactly `payload` on its
/// standard input. The script runs only when all of it has arrived. The payload has no such guard: when
/// the link breaks, standard input just ends early, so a script that stores what it reads must compare its
/// size or digest before it puts it in place.
///
/// A run ends when nothing holds its standard output open: what a script leaves in the background must
/// have its output redirected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Shell text, run as root (with sudo where the target says so).
    pub script: String,
    /// Follows the script on the same stream.
    pub payload: Vec<u8>,
}

/// What a program left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Exit status; 128 + n when signal n ended it.
    pub status: i32,
    /// All of standard output.
    pub stdout: Vec<u8>,
    /// All of standard error.
    pub stderr: Vec<u8>,
}

/// Sees standard output as it arrives, in whole lines and without their line breaks.
///
/// A type of its own because `async_trait` would tie the lifetime of the lines to that of the whole run.
pub type Progress<'a> = dyn FnMut(&str) + Send + 'a;

/// What a running program finds on its standard input after its payload. The input ends when the sender is
/// dropped.
pub type Replies = UnboundedReceiver<Vec<u8>>;

/// A way to run programs on one host.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Runs to the end. The program may be answered while it runs: `progress` sees what it says, and whoever
    /// holds the sender of `replies` says what it reads next.
    ///
    /// # Errors
    /// Only when the host could not be reached or the link broke; a failing program is an [`Output`].
    async fn converse(
        &self,
        program: &Program,
        replies: Replies,
        progress: &mut Progress<'_>,
    ) -> Result<Output, TransportError>;

    /// Runs to the end a program that needs no answer: its input ends with its payload.
    ///
    /// # Errors
    /// As [`Transport::converse`].
    async fn run(&self, program: &Program, progress: &mut Progress<'_>) -> Result<Output, TransportError> {
        let (_, nothing) = unbounded_channel();
        self.converse(program, nothing, progress).await
    }
}
