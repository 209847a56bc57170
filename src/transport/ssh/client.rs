//! What the connections of one run have in common.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::bastion::Bastions;
use super::key_file::KeyFiles;
use crate::transport::secret::{Nobody, Prompter, Secret};
use crate::transport::sudo::SudoPassword;

/// How long one host (and each bastion before it) has to answer, at each of these steps: from the first packet to
/// the host's key; each key that it is shown; the opening of a session.
pub const CONNECT_DEADLINE: Duration = Duration::from_secs(10);

/// After this time of silence a host is asked whether it lives, as with ssh's `ServerAliveInterval`. After three
/// questions without an answer the link counts as dead: so within 40 s, however long a program runs. A host
/// that is merely quiet answers, and is never cut off.
pub const KEEPALIVE: Duration = Duration::from_secs(10);

/// While a large payload is written to a host behind a bastion no questions can be asked, and the link to it is not
/// ours to watch: then it counts as dead when nothing moved for so many intervals.
pub(super) const STUCK: u32 = 30;

/// Questions that may stay open (`ServerAliveCountMax`).
pub(super) const UNANSWERED: u32 = 3;

/// Known hosts, keys, who is asked for passphrases, and the connections to bastions, which hosts share.
pub struct SshClient {
    /// Files of known host keys; in the first one new ones are remembered.
    pub(super) known_hosts: Vec<PathBuf>,
    pub(super) agent: Option<PathBuf>,
    pub(super) home: Option<PathBuf>,
    pub(super) prompter: Arc<dyn Prompter>,
    pub(super) keys: KeyFiles,
    pub(super) bastions: Bastions,
    pub(super) sudo: Option<SudoPassword>,
    pub(super) deadline: Duration,
    pub(super) keepalive: Duration,
    pub(super) clock: Option<fn() -> Timestamp>,
}

impl SshClient {
    /// Without an agent, and where nobody can be asked. `known_hosts` is the file of remembered host keys, for hosts and
    /// bastions.
    pub fn new(known_hosts: PathBuf) -> Self {
        Self {
            known_hosts: vec![known_hosts],
            agent: None,
            home: None,
            prompter: Arc::new(Nobody),
            keys: KeyFiles::default(),
            bastions: Bastions::default(),
            sudo: None,
            deadline: CONNECT_DEADLINE,
            keepalive: KEEPALIVE,
            clock: None,
        }
    }

    /// Trusts the lines of these files too, and never writes to them.
    pub fn with_more_known_hosts(mut self, files: impl IntoIterator<Item = PathBuf>) -> Self {
        self.known_hosts.extend(files);
        self
    }

    /// With the agent behind this socket (`SSH_AUTH_SOCK`).
    pub fn with_agent(self, socket: Option<PathBuf>) -> Self {
        Self { agent: socket, ..self }
    }

    /// With the directory that `~/` means in paths of keys.
    pub fn with_home(self, home: Option<PathBuf>) -> Self {
        Self { home, ..self }
    }

    /// With the time, without which no host certificate can be judged, so that none is asked for.
    pub fn with_clock(self, clock: fn() -> Timestamp) -> Self {
        Self { clock: Some(clock), ..self }
    }

    /// With somebody to ask for passphrases.
    pub fn with_prompter(self, prompter: Arc<dyn Prompter>) -> Self {
        Self { prompter, ..self }
    }

    /// With the password for a sudo that asks; without one it must not ask.
    pub fn with_sudo_password(self, password: Option<Secret>) -> Self {
        Self { sudo: password.map(SudoPassword::new), ..self }
    }

    /// With another deadline than [`CONNECT_DEADLINE`].
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// With another interval than [`KEEPALIVE`].
    pub fn with_keepalive(self, keepalive: Duration) -> Self {
        Self { keepalive, ..self }
    }
}
