//! The host keys that the connections of one run have accepted.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// A host key that was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedHostKey {
    /// Address and port of the host or bastion.
    pub address: String,
    /// Algorithm and fingerprint, as in `ssh-keygen -l`: `ssh-ed25519 SHA256:...`.
    pub key: String,
    /// Whether it was neither pinned nor known before this run.
    pub new: bool,
}

/// By address.
#[derive(Debug, Default)]
pub(super) struct HostKeys(Mutex<BTreeMap<String, AcceptedHostKey>>);

impl HostKeys {
    /// Takes in a key. One that was new stays new when the host is connected to again.
    pub(super) fn accept(&self, accepted: AcceptedHostKey) {
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let was_new = keys.get(&accepted.address).is_some_and(|known| known.new && known.key == accepted.key);
        let new = accepted.new || was_new;
        keys.insert(accepted.address.clone(), AcceptedHostKey { new, ..accepted });
    }

    /// The key of the host or bastion at this address; `None` where none was accepted.
    pub(super) fn at(&self, address: &str) -> Option<AcceptedHostKey> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(address).cloned()
    }
}
