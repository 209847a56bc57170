//! How a program reaches a host: over SSH, locally, or in a fake.

pub mod error;

use async_trait::async_trait;

use self::error::TransportError;

/// A program for the host's POSIX shell, and the bytes it reads from its standard input.
///
/// The shell gets the text by `eval`, so its length has no limit, and finds exactly `payload` on its
/// standard input.
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

/// A way to run programs on one host.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Runs to the end. `progress` sees standard output as it arrives, in whole lines.
    ///
    /// # Errors
    /// Only when the host could not be reached or the link broke; a failing program is an [`Output`].
    async fn run(
        &self,
        program: &Program,
        progress: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Output, TransportError>;
}
