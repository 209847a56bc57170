//! Host keys that a command on nodes has seen for the first time.

use serde::Serialize;

use crate::model::name::HostName;
use crate::transport::host_keys::AcceptedHostKey;

/// A host key that was neither pinned nor known before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewHostKey {
    /// The node whose host was connected to.
    pub node: HostName,
    /// Address and port of the host, or of one of its bastions.
    pub address: String,
    /// Algorithm and fingerprint: `ssh-ed25519 SHA256:...`.
    pub key: String,
}

/// The new ones among the keys that were accepted for a node.
pub fn new_host_keys<'a>(
    node: &'a HostName,
    accepted: &'a [AcceptedHostKey],
) -> impl Iterator<Item = NewHostKey> + 'a {
    accepted.iter().filter(|accepted| accepted.new).map(|accepted| NewHostKey {
        node: node.clone(),
        address: accepted.address.clone(),
        key: accepted.key.clone(),
    })
}
