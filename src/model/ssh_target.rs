//! SSH settings of a host.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Everything that is needed to open a session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SshTarget {
    /// An address or a resolvable name.
    pub host: String,
    /// TCP port; 22 by default.
    pub port: u16,
    /// Login user; root by default.
    pub user: String,
    /// Private keys to offer, in this order; `~/` is the home directory of the user who runs metalform. A public key, or
    /// one without its private key, selects that key of the agent.
    pub identity_files: Vec<PathBuf>,
    /// Whether only the keys of `identity_files` are offered, from files or the agent (`IdentitiesOnly`).
    pub identities_only: bool,
    /// Whether programs run under `sudo`.
    pub sudo: bool,
    /// The accepted host keys.
    pub host_key: HostKeyPolicy,
    /// The jump host to connect through, which may have one itself.
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

/// The accepted host keys. There is no policy that accepts any key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum HostKeyPolicy {
    /// Exactly this public key, as in a known_hosts line: `ssh-ed25519 AAAA...`.
    Pinned(String),
    /// The keys in `known_hosts`; an unknown host is refused.
    Known,
    /// As `Known`, but the key of an unknown host is added.
    AcceptNew,
    /// The key with this fingerprint (`SHA256:...`), which the operator has verified. It is remembered, in place of any
    /// other key of the host.
    Fingerprint(String),
}
