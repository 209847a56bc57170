//! One step of a Machine.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::conditions::{MachineCondition, MachineConditionKind};
use super::node_settings::NodeSettingsChange;
use super::reason::MachineReason;
use crate::kube_api::pod_name::PodName;
use crate::machine::api::machine_status::MachineError;
use crate::machine::drain::DrainEnd;
use crate::machine::host_job::{HostJob, JobFence};
use crate::model::name::HostName;

/// What to do with a Machine: at most one write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MachineStep {
    /// Add both finalizers.
    AddFinalizers,
    /// Write `status.host`.
    NoteHost(HostName),
    /// Remove `status.host`: the host is not, and will not be, its own.
    ForgetHost(HostName),
    /// Write the claim of the Machine, with state Claimed and this token, into the Host of this resource version, and
    /// clear what is known of jobs.
    ClaimHost {
        /// The host that is noted.
        host: HostName,
        /// Of the Host that was free.
        version: String,
        /// Greater than every earlier one.
        token: i64,
    },
    /// Start a worker.
    Begin(HostJob, JobFence),
    /// Interrupt the worker of this process, and wait until it has ended.
    Cancel(HostJob),
    /// Write `spec.providerID`.
    SetProviderId(String),
    /// Write `status.nodeRef`, and revoke the token of the kubelet.
    LinkNode,
    /// Change labels, annotations and taints of the Node.
    ChangeNode(NodeSettingsChange),
    /// Delete the Machine, with this `status.errorReason`; its MachineSet creates another.
    Delete(MachineError),
    /// Make the Node unschedulable.
    Cordon,
    /// List the pods that must leave the Node.
    ListPods,
    /// Evict these pods.
    Evict(BTreeSet<PodName>),
    /// Announce, by the condition DrainTimeout and an Event, that the rest of the pods is deleted at this time.
    AnnounceDeletion(Timestamp),
    /// Delete these pods without regard to their disruption budgets.
    DeletePods(BTreeSet<PodName>),
    /// Write the condition Drained: its host is made clean from here on.
    MarkDrained(DrainEnd),
    /// Remove both finalizers: the Machine is gone.
    RemoveFinalizers,
}

impl MachineStep {
    /// Whether it must be planned again on objects that were read from the API server and not from a cache.
    pub fn needs_live_read(&self) -> bool {
        match self {
            Self::ForgetHost(_)
            // A cache may show the host that it noted before this one.
            | Self::ClaimHost { .. }
            | Self::Delete(_)
            | Self::DeletePods(_)
            | Self::MarkDrained(_)
            | Self::RemoveFinalizers => true,
            Self::AddFinalizers
            | Self::NoteHost(_)
            | Self::Begin(..)
            | Self::Cancel(_)
            | Self::SetProviderId(_)
            | Self::LinkNode
            | Self::ChangeNode(_)
            | Self::Cordon
            | Self::ListPods
            | Self::Evict(_)
            | Self::AnnounceDeletion(_) => false,
        }
    }
}

/// What becomes of a Machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MachineLifePlan {
    /// The next step; `None`: nothing is left to do, or a worker, a host, a node or pods are awaited.
    pub step: Option<MachineStep>,
    /// For the status, in the order of the life. Their transition times are the caller's. Conditions of other types that
    /// the status contains stay as they are.
    pub conditions: Vec<MachineCondition>,
    /// Its host or its Node is gone for good: it is to be replaced, whatever the brake of a remediation
    /// ([`crate::machine::health`]).
    pub lost: bool,
    /// When to plan again if nothing changes.
    pub wake: Option<Timestamp>,
}

impl MachineLifePlan {
    pub(super) fn step(self, step: MachineStep) -> Self {
        Self { step: Some(step), ..self }
    }

    pub(super) fn wake_at(mut self, wake: Timestamp) -> Self {
        self.wake = Some(self.wake.map_or(wake, |present| present.min(wake)));
        self
    }

    pub(super) fn set(
        mut self,
        kind: MachineConditionKind,
        status: impl Into<Option<bool>>,
        reason: MachineReason,
    ) -> Self {
        self.conditions.retain(|condition| condition.kind != kind);
        self.conditions.push(MachineCondition { kind, status: status.into(), reason });
        self
    }
}
