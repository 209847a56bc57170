//! Why a program could not be run on a host at all.

use super::secret::PromptError;

/// One reason. `host` is the address and port that were tried, or `local`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// No TCP connection, or no SSH greeting, before the deadline.
    #[error("{host}: no SSH connection: {reason}")]
    Unreachable {
        /// Address and port.
        host: String,
        /// What the system said.
        reason: String,
    },
    /// The host has another key than the pinned or remembered one.
    #[error("{host}: its host key is {found}, but {expected} is expected")]
    HostKeyMismatch {
        /// Address and port.
        host: String,
        /// Algorithm and SHA256 fingerprint that it showed.
        found: String,
        /// Fingerprint, and where it is from.
        expected: String,
    },
    /// The host was never seen, and nothing says that it may be accepted.
    #[error("{host}: its host key {found} is not known")]
    HostKeyUnknown {
        /// Address and port.
        host: String,
        /// Algorithm and SHA256 fingerprint that it showed.
        found: String,
    },
    /// The file of remembered host keys could not be read or written.
    #[error("known hosts {path}: {reason}")]
    KnownHosts {
        /// Its path.
        path: String,
        /// What the system said.
        reason: String,
    },
    /// The host speaks SSH, but no algorithm that is accepted here.
    #[error("{host}: no SSH algorithm in common: {reason}")]
    Incompatible {
        /// Address and port.
        host: String,
        /// Which sort of algorithm, and what the host offers.
        reason: String,
    },
    /// Every key was refused.
    #[error("{host}: user {user} was refused with every key offered ({keys})")]
    AuthenticationRefused {
        /// Address and port.
        host: String,
        /// Login user.
        user: String,
        /// What was offered, comma separated, and why no more was.
        keys: String,
    },
    /// A private key that the host would take is protected by a passphrase, which nobody gave.
    #[error("private key {path} needs its passphrase: {error}")]
    PassphraseMissing {
        /// Its path.
        path: String,
        /// Why nobody did.
        error: PromptError,
    },
    /// A private key could not be read.
    #[error("private key {path}: {reason}")]
    IdentityUnreadable {
        /// Its path.
        path: String,
        /// Why.
        reason: String,
    },
    /// sudo asks for a password or does not allow the user.
    #[error("{host}: sudo is refused to user {user}: {reason}")]
    SudoRefused {
        /// Address and port.
        host: String,
        /// Login user.
        user: String,
        /// What sudo said, one line.
        reason: String,
    },
    /// The link broke while a program ran; whether it ended is not known.
    #[error("{host}: the connection was lost: {reason}")]
    Lost {
        /// Address and port.
        host: String,
        /// What was seen.
        reason: String,
    },
    /// The host runs no POSIX shell, or prints so much that its answer cannot be read.
    #[error("{host}: no usable shell: {reason}")]
    NoShell {
        /// Address and port.
        host: String,
        /// What came back instead.
        reason: String,
    },
}

impl TransportError {
    /// Whether trying again without a person's help is pointless.
    pub fn is_permanent(&self) -> bool {
        !matches!(self, Self::Unreachable { .. } | Self::Lost { .. })
    }
}
