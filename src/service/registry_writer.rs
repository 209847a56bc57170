//! Restarts the registry's writer, which frees blobs that no image has before it accepts connections again.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

/// The unit. Its `ExecStartPre` is the garbage collection.
const UNIT: &str = "metalform-registry-writer.service";
/// Deadline of accepting connections, after the unit has started.
const DEADLINE: Duration = Duration::from_secs(30);
/// Between two attempts to connect.
const PACE: Duration = Duration::from_millis(50);

/// Why the writer was not restarted.
#[derive(Debug, thiserror::Error)]
pub enum RegistryWriterError {
    /// systemctl cannot be run.
    #[error("systemctl: {0}")]
    Systemctl(#[from] io::Error),
    /// systemd did not restart it.
    #[error("{UNIT} was not restarted: {0}")]
    Unit(String),
    /// It does not accept connections.
    #[error("{}: no connection within {} s: {reason}", socket.display(), DEADLINE.as_secs())]
    Silent {
        /// Its socket.
        socket: PathBuf,
        /// The last attempt's.
        reason: io::Error,
    },
}

/// Restarts it, and waits until it accepts connections. If this process is killed, systemd completes it.
pub(super) async fn restart(socket: &Path) -> Result<(), RegistryWriterError> {
    let done = Command::new("systemctl").args(["restart", UNIT]).output().await?;
    if !done.status.success() {
        return Err(RegistryWriterError::Unit(String::from_utf8_lossy(&done.stderr).trim().to_owned()));
    }
    let end = Instant::now() + DEADLINE;
    loop {
        match UnixStream::connect(socket).await {
            Ok(_) => return Ok(()),
            Err(_) if Instant::now() < end => sleep(PACE).await,
            Err(reason) => return Err(RegistryWriterError::Silent { socket: socket.to_owned(), reason }),
        }
    }
}
