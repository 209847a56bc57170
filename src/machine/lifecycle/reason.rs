//! The reasons of the conditions of a Machine.

use std::fmt;

use jiff::Timestamp;

use crate::kube_api::eviction::DrainPod;
use crate::machine::drain::DrainEnd;
use crate::machine::host_choice::HostShortage;
use crate::machine::host_job::{HostJob, JobFailure};
use crate::machine::host_state::HostReason;
use crate::machine::kubelet_refusal::KubeletRefusal;
use crate::model::name::HostName;

/// Why a condition has its status. Displays as its message, which has no time of its own but where one is announced: it
/// stays the same while nothing changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MachineReason {
    /// Nothing is claimed yet.
    NoHost,
    /// It waits for a host.
    NoHostAvailable(HostShortage),
    /// It is noted and claimed next.
    Claiming(HostName),
    /// Another Machine has it, or it has left the pool.
    HostNotAvailable(HostName),
    /// It must not join, or no bundle has its version.
    VersionSkew(KubeletRefusal),
    /// Its own.
    Claimed(HostName),
    /// Its Node cannot exist yet.
    NotDeployed,
    /// It is not this condition's turn.
    Pending(HostJob),
    /// A worker is at it, in this phase.
    InProgress(HostJob, String),
    /// It is repeated.
    Failed(JobFailure),
    /// It is over.
    Succeeded(HostJob),
    /// It does not answer, and its node may still run.
    HostUnreachable(HostName),
    /// It will not run the node again.
    HostLost(HostName),
    /// It is not created yet.
    NodeNotFound(HostName),
    /// It has the name, and another provider ID.
    ForeignNode {
        /// Its name.
        node: HostName,
        /// Its own, or empty.
        provider_id: String,
    },
    /// Its own.
    NodeLinked(HostName),
    /// Another client has deleted it.
    NodeMissing(HostName),
    /// It has been missing for too long.
    NodeLost(HostName),
    /// As the kubelet reports.
    NodeNotReady(String),
    /// None of its pods runs.
    NoPodNetwork,
    /// Its labels, annotations and taints are written.
    NodeChanging,
    /// It runs pods.
    NodeReady,
    /// It is drained.
    Draining(Vec<DrainPod>),
    /// The same, and the rest is deleted.
    DrainTimeout(Vec<DrainPod>, Timestamp),
    /// It is over.
    DrainEnded(DrainEnd),
    /// It is drained first.
    DrainPending,
    /// What happens with its host.
    HostCleanup(HostName, HostReason),
    /// It has none.
    Released,
    /// It will not serve another Machine.
    HostQuarantined(HostName),
    /// Its host is not clean.
    Deleting,
}

impl MachineReason {
    /// `CamelCase`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NoHost => "NoHost",
            Self::NoHostAvailable(_) => "NoHostAvailable",
            Self::Claiming(_) => "Claiming",
            Self::HostNotAvailable(_) => "HostNotAvailable",
            Self::VersionSkew(KubeletRefusal::Skew(_)) => "VersionSkew",
            Self::VersionSkew(KubeletRefusal::Absent(_)) => "VersionNotInBundle",
            Self::Claimed(_) => "Claimed",
            Self::NotDeployed => "NotDeployed",
            Self::Pending(_) => "Pending",
            Self::InProgress(..) => "InProgress",
            Self::Failed(_) => "Failed",
            Self::Succeeded(_) => "Succeeded",
            Self::HostUnreachable(_) => "HostUnreachable",
            Self::HostLost(_) => "HostLost",
            Self::NodeNotFound(_) => "NodeNotFound",
            Self::ForeignNode { .. } => "ForeignNode",
            Self::NodeLinked(_) => "NodeLinked",
            Self::NodeMissing(_) => "NodeMissing",
            Self::NodeLost(_) => "NodeLost",
            Self::NodeNotReady(_) => "NodeNotReady",
            Self::NoPodNetwork => "NoPodNetwork",
            Self::NodeChanging => "NodeChanging",
            Self::NodeReady => "NodeReady",
            Self::Draining(_) => "Draining",
            Self::DrainTimeout(..) => "DrainTimeoutAnnounced",
            Self::DrainEnded(end) => end.reason(),
            Self::DrainPending => "DrainPending",
            Self::HostCleanup(_, reason) => reason.name(),
            Self::Released => "Released",
            Self::HostQuarantined(_) => "HostQuarantined",
            Self::Deleting => "Deleting",
        }
    }
}

impl fmt::Display for MachineReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHost => f.write_str("the machine has no host"),
            Self::NoHostAvailable(shortage) => write!(f, "{shortage}"),
            Self::Claiming(host) => write!(f, "host {host} is chosen and is claimed next"),
            Self::HostNotAvailable(host) => {
                write!(f, "host {host} is no longer available; another is chosen")
            }
            Self::VersionSkew(error) => write!(f, "{error}"),
            Self::Claimed(host) => write!(f, "host {host} is claimed"),
            Self::NotDeployed => f.write_str("the host is not deployed"),
            Self::Pending(job) => write!(f, "the {job} has not begun"),
            Self::InProgress(job, phase) if phase.is_empty() => write!(f, "the {job} is in progress"),
            Self::InProgress(job, phase) => write!(f, "the {job} is in progress: {phase}"),
            Self::Failed(JobFailure { job, attempts, message, .. }) => {
                write!(f, "the {job} failed and is repeated, attempts: {attempts}: {message}")
            }
            Self::Succeeded(job) => write!(f, "the {job} has succeeded"),
            Self::HostUnreachable(host) => {
                write!(f, "host {host} does not answer over SSH; its node may still run")
            }
            Self::HostLost(host) => write!(f, "host {host} is off, lost or deleted"),
            Self::NodeNotFound(node) => write!(f, "node {node} has not registered"),
            Self::ForeignNode { node, provider_id } => write!(
                f,
                "node {node} has the provider ID {provider_id:?}, which is not this machine's; delete it if it is not used"
            ),
            Self::NodeLinked(node) => write!(f, "node {node} has registered"),
            Self::NodeMissing(node) => {
                write!(
                    f,
                    "node {node} was deleted; its kubelet is restarted once, then the machine is replaced"
                )
            }
            Self::NodeLost(node) => write!(f, "node {node} was deleted and has not registered again"),
            Self::NodeNotReady(message) if message.is_empty() => f.write_str("the node is not Ready"),
            Self::NodeNotReady(message) => write!(f, "the node is not Ready: {message}"),
            Self::NoPodNetwork => f.write_str("the pod network does not run on the node"),
            Self::NodeChanging => f.write_str("labels, annotations and taints of the node are written"),
            Self::NodeReady => f.write_str("the node is Ready and accepts pods"),
            Self::Draining(pods) => pods_left(f, pods),
            Self::DrainTimeout(pods, when) => {
                pods_left(f, pods)?;
                write!(
                    f,
                    "; pods that are left at {when} are deleted without regard to their disruption budgets"
                )
            }
            Self::DrainEnded(end) => write!(f, "{end}"),
            Self::DrainPending => f.write_str("the node is drained first"),
            Self::HostCleanup(host, reason) => write!(f, "host {host}: {reason}"),
            Self::Released => f.write_str("the machine has no host"),
            Self::HostQuarantined(host) => write!(f, "host {host} is quarantined or lost"),
            Self::Deleting => f.write_str("the machine is being deleted"),
        }
    }
}

fn pods_left(f: &mut fmt::Formatter<'_>, pods: &[DrainPod]) -> fmt::Result {
    f.write_str("the pods of the node are evicted")?;
    for (index, pod) in pods.iter().enumerate() {
        let state =
            pod.blocked.as_deref().unwrap_or(if pod.terminating { "is terminating" } else { "is evicted" });
        write!(f, "{}{}: {state}", if index == 0 { ", left: " } else { "; " }, pod.name)?;
    }
    Ok(())
}
