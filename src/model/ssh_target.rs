//! How a host is reached over SSH.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Everything needed to open a session on one host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SshTarget {
    /// An address or a resolvable name.
    pub host: String,
    /// TCP port; 22 where nothing else is said.
    pub port: u16,
    /// The login user.
    pub user: String,
    /// Private keys to offer, in this order; `~/` is the home of whoever runs metalform. A public key, or one whose
    /// private half is elsewhere, means that key in the agent.
    pub identity_files: Vec<PathBuf>,
    /// Whether nothing else is offered (as with `IdentitiesOnly`): of the agent's keys, those alone that
    /// `identity_files` name.
    pub identities_only: bool,
    /// Whether programs run under `sudo`.
    pub sudo: bool,
    /// What the host's key must be.
    pub host_key: HostKeyPolicy,
    /// The host to go through, which may itself have one.
    pub bastion: Option<Box<SshTarget>>,
}

impl SshTarget {
    /// Address and port, for messages: `10.0.0.5:22`, `[fd00::5]:22`.
    pub fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// Which host key is accepted. There is no way to accept any.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum HostKeyPolicy {
    /// Exactly this public key, as in a known_hosts line: `ssh-ed25519 AAAA...`.
    Pinned(String),
    /// What `known_hosts` says; an unknown host is refused.
    Known,
    /// As `Known`, but the key of a host that was never seen is remembered.
    AcceptNew,
}
