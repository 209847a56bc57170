//! What actions change.

use serde::{Deserialize, Serialize};

/// What an action changes. Two actions that change the same thing do not run at the same time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Target {
    /// The host of the operation.
    Host,
    /// Another host, by node name.
    Peer(String),
    /// The Node object.
    Node,
    /// Tokens for this node.
    JoinTokens,
    /// The reachability pod.
    ReachabilityPod,
    /// etcd membership and its lease.
    Etcd,
    /// Objects of the whole cluster.
    Objects,
    /// CAs and keys on the bootstrap node.
    Trust,
    /// The registry's contents.
    Registry,
}
