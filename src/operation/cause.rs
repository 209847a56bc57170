//! What a condition depends on.

use serde::{Deserialize, Serialize};

use super::effect::Look;

/// Something that a condition depends on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Cause {
    /// A systemd unit.
    Unit(String),
    /// The container of a static pod.
    Container(String),
    /// The lease on etcd membership, while this run has it: one that is lost is taken again.
    Lease,
}

impl Cause {
    /// The kubelet.
    pub fn kubelet() -> Self {
        Self::Unit("kubelet.service".to_owned())
    }

    /// The container of a static pod.
    pub fn container(name: &str) -> Self {
        Self::Container(name.to_owned())
    }

    /// The look that shows it.
    pub fn look(&self) -> Look {
        match self {
            Self::Unit(name) => Look::Unit(name.clone()),
            Self::Container(name) => Look::Container(name.clone()),
            Self::Lease => Look::Lease,
        }
    }
}
