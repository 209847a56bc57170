//! Settings and caches that the SSH connections of one run share.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::bastion::Bastions;
use super::key_file::KeyFiles;
use crate::transport::held_key::HeldKeyError;
use crate::transport::host_keys::HostKeys;
use crate::transport::secret::{NoPrompter, Prompter, Secret};
use crate::transport::sudo::SudoPassword;

/// How long one host (and each bastion before it) may take for each of these steps: from the first packet to the host
/// key; each offered key; the opening of a session.
pub const CONNECT_DEADLINE: Duration = Duration::from_secs(10);

/// After this time without data a keepalive request is sent, as with ssh's `ServerAliveInterval`. The connection is
/// dead when [`UNANSWERED`] requests have no answer an interval later: within 8 s of the last data, so that a host
/// that loses power is noticed within 10 s. A host that is merely quiet answers, and is never disconnected.
pub const KEEPALIVE: Duration = Duration::from_secs(2);

/// While a large payload is written to a host behind a bastion no keepalive requests can be sent, and the kernel here
/// does not see the connection between the bastion and the host: it is dead when nothing moved for this time.
pub const STUCK: Duration = Duration::from_secs(300);

/// Keepalive requests that may be without an answer (`ServerAliveCountMax`).
pub(super) const UNANSWERED: u32 = 3;

/// Known hosts, keys, the prompter, the sudo password, and the connections to bastions.
pub struct SshClient {
    /// Files of known host keys; new ones are added to the first.
    pub(super) known_hosts: Vec<PathBuf>,
    /// Whether new host keys are written down.
    pub(super) remembers: bool,
    pub(super) agent: Option<PathBuf>,
    pub(super) home: Option<PathBuf>,
    pub(super) prompter: Arc<dyn Prompter>,
    pub(super) keys: KeyFiles,
    pub(super) bastions: Bastions,
    pub(in crate::transport) host_keys: Arc<HostKeys>,
    pub(super) sudo: Option<SudoPassword>,
    pub(super) deadline: Duration,
    pub(super) keepalive: Duration,
    pub(super) stuck: Duration,
    pub(super) clock: Option<fn() -> Timestamp>,
}

impl SshClient {
    /// Without agent and prompter. `known_hosts` is the file of remembered host keys, for hosts and bastions.
    pub fn new(known_hosts: PathBuf) -> Self {
        Self {
            known_hosts: vec![known_hosts],
            remembers: true,
            agent: None,
            home: None,
            prompter: Arc::new(NoPrompter),
            keys: KeyFiles::default(),
            bastions: Bastions::default(),
            host_keys: Arc::default(),
            sudo: None,
            deadline: CONNECT_DEADLINE,
            keepalive: KEEPALIVE,
            stuck: STUCK,
            clock: None,
        }
    }

    /// Trusts the lines of these files too, and never writes to them.
    pub fn with_more_known_hosts(mut self, files: impl IntoIterator<Item = PathBuf>) -> Self {
        self.known_hosts.extend(files);
        self
    }

    /// Writes no new host keys: the first key of a new host counts for all its connections, and is new to the next
    /// client.
    pub fn without_remembering(self) -> Self {
        Self { remembers: false, ..self }
    }

    /// Uses the agent behind this socket (`SSH_AUTH_SOCK`).
    pub fn with_agent(self, socket: Option<PathBuf>) -> Self {
        Self { agent: socket, ..self }
    }

    /// Sets the directory that `~/` stands for in paths of keys.
    pub fn with_home(self, home: Option<PathBuf>) -> Self {
        Self { home, ..self }
    }

    /// Sets the clock that validates host certificates; without one, none is requested.
    pub fn with_clock(self, clock: fn() -> Timestamp) -> Self {
        Self { clock: Some(clock), ..self }
    }

    /// Sets the prompter for passphrases.
    pub fn with_prompter(self, prompter: Arc<dyn Prompter>) -> Self {
        Self { prompter, ..self }
    }

    /// Sets the password for sudo; without one, a sudo that prompts is an error.
    pub fn with_sudo_password(self, password: Option<Secret>) -> Self {
        Self { sudo: password.map(SudoPassword::new), ..self }
    }

    /// As [`crate::transport::pool::ConnectionPool::hold_key`].
    pub(in crate::transport) fn hold_key(&self, name: &str, key: &Secret) -> Result<PathBuf, HeldKeyError> {
        self.keys.hold(name, key)
    }

    /// Replaces [`CONNECT_DEADLINE`].
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// Replaces [`STUCK`].
    pub fn with_stuck(self, stuck: Duration) -> Self {
        Self { stuck, ..self }
    }

    /// Replaces [`KEEPALIVE`].
    pub fn with_keepalive(self, keepalive: Duration) -> Self {
        Self { keepalive, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_host_is_noticed_within_10_seconds() {
        assert!(KEEPALIVE * (UNANSWERED + 1) <= Duration::from_secs(10));
    }
}
