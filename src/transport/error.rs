//! Why a program was not run on a host.

use super::secret::PromptError;

/// One reason. `host` is the address and port that were tried, or `local`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// No TCP connection, or no SSH greeting, before the deadline.
    #[error("{host}: no SSH connection: {reason}")]
    Unreachable {
        /// Address and port.
        host: String,
        /// From the operating system.
        reason: String,
    },
    /// The host has another key than the pinned or remembered one.
    #[error("{host}: host key {found} does not match: expected {expected}")]
    HostKeyMismatch {
        /// Address and port.
        host: String,
        /// Algorithm and SHA256 fingerprint of the host's key.
        found: String,
        /// Fingerprint, and its source.
        expected: String,
    },
    /// The host's key is neither pinned nor in a known hosts file, and new hosts are not accepted.
    #[error("{host}: unknown host key {found}")]
    HostKeyUnknown {
        /// Address and port.
        host: String,
        /// Algorithm and SHA256 fingerprint of the host's key.
        found: String,
    },
    /// The file of remembered host keys could not be read or written.
    #[error("known hosts {path}: {reason}")]
    KnownHosts {
        /// Of the file.
        path: String,
        /// From the operating system.
        reason: String,
    },
    /// The host supports SSH, but no algorithm that is accepted here.
    #[error("{host}: no SSH algorithm in common: {reason}")]
    Incompatible {
        /// Address and port.
        host: String,
        /// The kind of algorithm, and what the host offers.
        reason: String,
    },
    /// Every key was refused.
    #[error("{host}: user {user} was refused with every offered key ({keys})")]
    AuthenticationRefused {
        /// Address and port.
        host: String,
        /// Login user.
        user: String,
        /// The offered keys, comma separated, and why no more were offered.
        keys: String,
    },
    /// A private key that the host would accept is encrypted, and no passphrase was given.
    #[error("private key {path} requires a passphrase: {error}")]
    PassphraseMissing {
        /// Of the key.
        path: String,
        /// Why none was given.
        error: PromptError,
    },
    /// A private key could not be read or unlocked.
    #[error("private key {path}: {reason}")]
    IdentityUnreadable {
        /// Of the key.
        path: String,
        /// From the operating system or the parser.
        reason: String,
    },
    /// sudo requires a password or does not allow the user.
    #[error("{host}: sudo refuses user {user}: {reason}")]
    SudoRefused {
        /// Address and port.
        host: String,
        /// Login user.
        user: String,
        /// From sudo, one line.
        reason: String,
    },
    /// The connection broke while a program ran; whether the program ended is unknown.
    #[error("{host}: connection lost: {reason}")]
    Lost {
        /// Address and port.
        host: String,
        /// From the host, or from the operating system.
        reason: String,
    },
    /// The host runs no POSIX shell, or its output exceeds the limit.
    #[error("{host}: no usable shell: {reason}")]
    NoShell {
        /// Address and port.
        host: String,
        /// What it printed instead.
        reason: String,
    },
    /// The host keeps the tokens of jobs, and did not run a program of this one.
    #[error("{host}: refused a program under token {token}: {reason}")]
    Fenced {
        /// Its name.
        host: String,
        /// Of the program.
        token: u64,
        /// Why.
        reason: FenceRefusal,
    },
}

/// Why a host did not run a program of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FenceRefusal {
    /// It has been given a larger token: another process works on it.
    #[error("it has been given token {largest}")]
    Superseded {
        /// The largest one.
        largest: u64,
    },
    /// A program under a smaller token still runs.
    #[error("a program of an earlier job still runs")]
    Busy,
    /// The file with the largest token contains something else.
    #[error("/var/lib/metalform/fence contains no number; remove it if no other process works on the host")]
    Unreadable,
    /// The largest token cannot be written.
    #[error("/var/lib/metalform/fence cannot be written")]
    Unwritable,
}

impl TransportError {
    /// Whether a retry fails again until an operator has changed something.
    pub fn is_permanent(&self) -> bool {
        !matches!(self, Self::Unreachable { .. } | Self::Lost { .. })
    }
}
