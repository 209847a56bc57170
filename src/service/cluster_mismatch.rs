//! Something that a cluster has otherwise than its configuration, and that no deployment of its nodes may change.

use crate::operation::present_networks::ChangedNetwork;

/// Something that a cluster has otherwise than its configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClusterMismatch {
    /// A network.
    #[error(transparent)]
    Network(#[from] ChangedNetwork),
}

impl ClusterMismatch {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Network(changed) => changed.hint(),
        }
    }
}
