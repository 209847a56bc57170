//! How the pods of a Machine leave its node before its host is reset.
//!
//! Which pods must leave is decided by [`crate::kube_api::eviction`], as for `remove-node`. This is when they are
//! evicted, when a drain is not possible, and when the rest of the pods is deleted.
//!
//! # Guarantees
//! - Pods are evicted, so that their disruption budgets hold, until the drain timeout.
//! - No pod is deleted that was not announced [`NOTICE`] before, also where the controller was down at the timeout.
//! - With [`DrainTimeout::Never`] no pod is deleted.

use std::collections::BTreeSet;
use std::fmt;

use jiff::{SignedDuration, Timestamp};

use super::api::drain_timeout::DrainTimeout;
use crate::kube_api::eviction::DrainPod;
use crate::kube_api::pod_name::PodName;

/// From the deletion of a Machine on, unless configured otherwise (machine-controller `-skip-eviction-after`).
pub const DRAIN_TIMEOUT: DrainTimeout = DrainTimeout::After(std::time::Duration::from_secs(2 * 60 * 60));

/// Between the announcement that pods will be deleted and their deletion.
pub const NOTICE: SignedDuration = SignedDuration::from_mins(5);

/// Between the deletion of pods and the reset of their host, for those that do not end: more than the default
/// `terminationGracePeriodSeconds`.
const TERMINATION: SignedDuration = SignedDuration::from_mins(2);

/// How soon the pods are listed again.
const RETRY: SignedDuration = SignedDuration::from_secs(10);

/// What is known of a drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrainScene<'a> {
    /// The Node of the Machine exists.
    pub node_exists: bool,
    /// Its condition Ready is True.
    pub node_ready: bool,
    /// `spec.unschedulable`.
    pub cordoned: bool,
    /// The host is confirmed to be off or lost.
    pub host_off: bool,
    /// Another Node is Ready and schedulable, or a Machine that will be one has no Node yet.
    pub elsewhere: bool,
    /// The pods that must leave; `None` before they were listed.
    pub pods: Option<&'a [DrainPod]>,
    /// When the deletion of the Machine began.
    pub deleting_since: Timestamp,
    /// Of the Machine, or [`DRAIN_TIMEOUT`].
    pub timeout: DrainTimeout,
    /// When the deletion of pods was announced.
    pub announced: Option<Timestamp>,
}

/// What a drain does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DrainStep {
    /// It is over.
    Done(DrainEnd),
    /// Make the Node unschedulable.
    Cordon,
    /// List the pods that must leave.
    ListPods,
    /// Evict these pods.
    Evict(BTreeSet<PodName>),
    /// Announce, by a condition and an Event, that the rest of the pods is deleted at this time.
    Announce(Timestamp),
    /// Delete these pods without regard to their disruption budgets.
    Delete(BTreeSet<PodName>),
    /// Pods have yet to leave.
    Wait {
        /// When to plan again.
        until: Timestamp,
        /// When the rest of the pods is deleted, if that was announced.
        deleted_at: Option<Timestamp>,
    },
}

/// Why a drain is over. Displays as the message of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DrainEnd {
    /// No pod is left that must leave.
    Drained,
    /// The pods that were left were deleted after the drain timeout.
    Forced,
    /// The Machine has no Node.
    NoNode,
    /// A kubelet that does not report cannot end pods (machine-controller).
    NodeNotReady,
    /// Nothing runs on the host.
    HostOff,
    /// No other node can run the pods (machine-controller).
    NowhereToGo,
}

impl DrainEnd {
    /// The reason of a condition.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Drained => "Drained",
            Self::Forced => "DrainTimeout",
            Self::NoNode => "NoNode",
            Self::NodeNotReady => "NodeNotReady",
            Self::HostOff => "HostOff",
            Self::NowhereToGo => "NowhereToGo",
        }
    }
}

impl fmt::Display for DrainEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Drained => "no pods are left that must leave the node",
            Self::Forced => "the pods that were left were deleted after the drain timeout",
            Self::NoNode => "not drained: the machine has no node",
            Self::NodeNotReady => "not drained: the node is not Ready",
            Self::HostOff => "not drained: the host is off",
            Self::NowhereToGo => "not drained: no other node can run the pods",
        })
    }
}

/// The next step of a drain.
pub fn next(scene: &DrainScene<'_>, now: Timestamp) -> DrainStep {
    if let Some(end) = impossible(scene) {
        return DrainStep::Done(end);
    }
    if !scene.cordoned {
        return DrainStep::Cordon;
    }
    let Some(pods) = scene.pods else { return DrainStep::ListPods };
    if pods.is_empty() {
        return DrainStep::Done(DrainEnd::Drained);
    }
    let evictable = names(pods, |pod| !pod.terminating && pod.blocked.is_none());
    if !evictable.is_empty() {
        return DrainStep::Evict(evictable);
    }
    forced(scene, pods, now)
}

/// What is left is blocked, or terminates.
fn forced(scene: &DrainScene<'_>, pods: &[DrainPod], now: Timestamp) -> DrainStep {
    let retry = now.checked_add(RETRY).unwrap_or(Timestamp::MAX);
    let DrainTimeout::After(timeout) = scene.timeout else {
        return DrainStep::Wait { until: retry, deleted_at: None };
    };
    let deadline = scene.deleting_since.checked_add(timeout).unwrap_or(Timestamp::MAX);
    let notice_at = deadline.checked_sub(NOTICE).unwrap_or(Timestamp::MIN);
    let Some(announced) = scene.announced else {
        if now < notice_at {
            return DrainStep::Wait { until: retry.min(notice_at), deleted_at: None };
        }
        let noticed = now.checked_add(NOTICE).unwrap_or(Timestamp::MAX);
        return DrainStep::Announce(deadline.max(noticed));
    };
    let deletion = deadline.max(announced.checked_add(NOTICE).unwrap_or(Timestamp::MAX));
    if now < deletion {
        return DrainStep::Wait { until: retry.min(deletion), deleted_at: Some(deletion) };
    }
    let blocked = names(pods, |pod| !pod.terminating);
    if !blocked.is_empty() {
        return DrainStep::Delete(blocked);
    }
    let end = deletion.checked_add(TERMINATION).unwrap_or(Timestamp::MAX);
    if now < end {
        return DrainStep::Wait { until: retry.min(end), deleted_at: Some(deletion) };
    }
    DrainStep::Done(DrainEnd::Forced)
}

fn impossible(scene: &DrainScene<'_>) -> Option<DrainEnd> {
    if !scene.node_exists {
        Some(DrainEnd::NoNode)
    } else if scene.host_off {
        Some(DrainEnd::HostOff)
    } else if !scene.node_ready {
        Some(DrainEnd::NodeNotReady)
    } else if !scene.elsewhere {
        Some(DrainEnd::NowhereToGo)
    } else {
        None
    }
}

fn names(pods: &[DrainPod], filter: impl Fn(&DrainPod) -> bool) -> BTreeSet<PodName> {
    pods.iter().filter(|pod| filter(pod)).map(|pod| pod.name.clone()).collect()
}

#[cfg(test)]
mod tests;
