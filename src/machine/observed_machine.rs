//! What the planners know of one Machine.

use jiff::{SignedDuration, Timestamp};

/// A Machine as it was last observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedMachine {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.creationTimestamp`.
    pub created: Timestamp,
    /// It has a deletion timestamp: its node drains, or its host is reset. It exists until its host is back in the pool
    /// or in quarantine.
    pub deleting: bool,
    /// How far it is.
    pub stage: MachineStage,
    /// It has the annotation `cluster.k8s.io/delete-machine`, which the cluster autoscaler sets before it scales down.
    pub marked: bool,
}

/// How far a Machine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MachineStage {
    /// Its Node is gone or its host was declared lost, and it is to be replaced.
    Lost,
    /// It has no host: deleting it frees nothing and costs nothing.
    WaitingForHost,
    /// It has a host, and no Node yet.
    Joining,
    /// Its Node exists.
    Joined {
        /// `lastTransitionTime` of the Node's condition Ready while that is True.
        ready_since: Option<Timestamp>,
    },
}

impl ObservedMachine {
    /// Whether its Node is Ready and it is not being deleted.
    pub fn is_ready(&self) -> bool {
        !self.deleting && matches!(self.stage, MachineStage::Joined { ready_since: Some(_) })
    }

    /// Whether it has been Ready for longer than `minReadySeconds`; with zero, Ready is enough (Kubernetes
    /// `IsPodAvailable`).
    pub fn is_available(&self, min_ready: SignedDuration, now: Timestamp) -> bool {
        match self.stage {
            MachineStage::Joined { ready_since: Some(since) } if !self.deleting => {
                min_ready.is_zero() || now.duration_since(since) > min_ready
            }
            _ => false,
        }
    }

    /// The time at which it is available unless its Node changes, if it is Ready and not yet available. One second later
    /// than `minReadySeconds`, since the API cuts `lastTransitionTime` to whole seconds.
    pub fn available_at(&self, min_ready: SignedDuration, now: Timestamp) -> Option<Timestamp> {
        match self.stage {
            MachineStage::Joined { ready_since: Some(since) }
                if !self.deleting && !self.is_available(min_ready, now) =>
            {
                since.checked_add(min_ready.saturating_add(SignedDuration::from_secs(1))).ok()
            }
            _ => None,
        }
    }
}
