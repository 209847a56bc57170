//! The connections of one run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::Transport;
use super::held_key::HeldKeyError;
use super::host_keys::AcceptedHostKey;
use super::local::LocalTransport;
use super::secret::Secret;
use super::ssh::{SshClient, SshTransport};
use crate::model::name::HostName;
use crate::model::ssh_target::SshTarget;

/// Every connection of a run, to the hosts of a roster and to the hosts of Nodes alike.
///
/// # Guarantees
/// - A host has one connection at a time, shared by everything that runs programs on it; a bastion has one, shared by
///   all hosts behind it. A connection that broke is replaced when it is next needed.
/// - A passphrase is prompted for once a key, and the sudo password is verified by one host before a second one gets it.
/// - The machine that metalform runs on is not reached through its own sshd.
pub struct ConnectionPool {
    client: Arc<SshClient>,
    local: Option<HostName>,
    remote: Mutex<BTreeMap<SshTarget, Arc<SshTransport>>>,
}

impl ConnectionPool {
    /// A pool without connections. `local` is the name of the machine that metalform runs on, where it is one of the
    /// hosts.
    pub fn new(client: SshClient, local: Option<HostName>) -> Self {
        Self { client: Arc::new(client), local, remote: Mutex::default() }
    }

    /// The transport of a host; its programs connect when they are run.
    pub fn transport(&self, host: &HostName, target: &SshTarget) -> Arc<dyn Transport> {
        if self.local.as_ref() == Some(host) { Arc::new(LocalTransport) } else { self.ssh(target) }
    }

    /// The transport of an SSH target, also when that is this machine.
    pub fn ssh(&self, target: &SshTarget) -> Arc<SshTransport> {
        let mut remote = self.remote.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(SshTransport::of(Arc::clone(&self.client), target.clone()));
        Arc::clone(remote.entry(target.clone()).or_insert_with(new))
    }

    /// Holds a private key in memory, for targets whose `identity_files` contain the path that this returns: that of no file.
    /// `name` is for messages.
    ///
    /// # Errors
    /// When it is no private key, or is encrypted.
    pub fn hold_key(&self, name: &str, key: &Secret) -> Result<PathBuf, HeldKeyError> {
        self.client.hold_key(name, key)
    }

    /// The keys that this run has accepted of a host and its bastions, the host's first; none of the machine that
    /// metalform runs on.
    pub fn host_keys(&self, host: &HostName, target: &SshTarget) -> Vec<AcceptedHostKey> {
        if self.is_local(host) {
            return Vec::new();
        }
        let machines = std::iter::once(target).chain(target.bastions());
        machines.filter_map(|machine| self.client.host_keys.at(&machine.address())).collect()
    }

    /// Whether this is the machine that metalform runs on.
    pub fn is_local(&self, host: &HostName) -> bool {
        self.local.as_ref() == Some(host)
    }
}
