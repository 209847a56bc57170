//! Where a failure is to be looked for. It decides the exit code.

use serde::{Deserialize, Serialize};

/// The system that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FailureClass {
    /// Files on the bootstrap node.
    Configuration,
    /// The connection to a host.
    Ssh,
    /// A host.
    Host,
    /// etcd.
    Etcd,
    /// The Kubernetes API.
    Api,
    /// Pods of the cluster's users.
    Workload,
    /// Another operation, whose turn on etcd does not end.
    OtherOperation,
    /// metalform itself.
    Own,
}
