//! Progress events, from runs to reporters.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::name::HostName;

/// Events of one host are in order; those of several hosts interleave. `--log-format json` prints them, with durations
/// in seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// A run over a fleet starts.
    RunBegun {
        /// Number of selected hosts.
        hosts: usize,
    },
    /// The run was interrupted: no further host and no further resource is started.
    StopAsked,
    /// The command has decided what it is going to do, and has changed nothing yet.
    PlanMade {
        /// For people.
        lines: Vec<String>,
    },
    /// A host of a fleet is being connected to.
    HostBegun {
        /// The host.
        host: HostName,
    },
    /// The work on a host of a fleet has ended.
    HostEnded {
        /// The host.
        host: HostName,
        /// Result.
        outcome: HostOutcome,
        /// Number of changed resources.
        changed: usize,
        /// Since the start.
        #[serde(serialize_with = "seconds", deserialize_with = "from_seconds")]
        elapsed: Duration,
    },
    /// An operation on a node starts: it has the host to itself.
    NodeBegun {
        /// The host of the operation.
        host: HostName,
        /// What is done to it.
        operation: OperationKind,
    },
    /// An operation on a node has ended, or was refused before it could start.
    NodeEnded {
        /// The host of the operation.
        host: HostName,
        /// What was done to it.
        operation: OperationKind,
        /// Number of changed resources and objects.
        changed: usize,
        /// Since the start.
        #[serde(serialize_with = "seconds", deserialize_with = "from_seconds")]
        elapsed: Duration,
        /// Why it is not complete; `None` where it is.
        failure: Option<NodeFailure>,
    },
    /// An operation did what users of the cluster notice.
    Reached {
        /// The host of the operation.
        host: HostName,
        /// What it did.
        milestone: Milestone,
    },
    /// A phase of an operation starts.
    PhaseBegun {
        /// The host of the operation.
        host: HostName,
        /// Title of the phase.
        phase: String,
    },
    /// A phase succeeded or failed.
    PhaseEnded {
        /// The host of the operation.
        host: HostName,
        /// Title of the phase.
        phase: String,
        /// Since the start.
        #[serde(serialize_with = "seconds", deserialize_with = "from_seconds")]
        elapsed: Duration,
        /// Whether it succeeded.
        holds: bool,
    },
    /// A phase performs an action.
    Acted {
        /// The host of the operation.
        host: HostName,
        /// As a sentence.
        action: String,
    },
    /// A phase waits. Sent at the start of the wait, and repeatedly while it lasts.
    Waiting {
        /// The host of the operation.
        host: HostName,
        /// The awaited condition, as a sentence.
        condition: String,
        /// The last observed state.
        last_seen: String,
        /// Since the start of the wait.
        #[serde(serialize_with = "seconds", deserialize_with = "from_seconds")]
        elapsed: Duration,
    },
    /// A host was compared with its states.
    Planned {
        /// The host.
        host: HostName,
        /// Ids of the resources to change, in order.
        changes: Vec<String>,
        /// Number of unchanged resources.
        unchanged: usize,
    },
    /// A resource is being applied.
    ResourceBegun {
        /// The host.
        host: HostName,
        /// `kind:name`.
        resource: String,
    },
    /// All steps of a resource are completed.
    ResourceDone {
        /// The host.
        host: HostName,
        /// `kind:name`.
        resource: String,
    },
    /// A step of a resource failed; no later step runs on this host.
    ResourceFailed {
        /// The host.
        host: HostName,
        /// `kind:name`.
        resource: String,
        /// Exit status of the step.
        status: i32,
        /// The end of its output.
        output: String,
    },
}

/// What an operation does to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OperationKind {
    /// It becomes a node, or what its manifest describes.
    Deployment,
    /// It leaves the cluster.
    Removal,
    /// It becomes what it was before it was a node.
    Reset,
}

/// What users of a cluster notice of an operation on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Milestone {
    /// Its pods leave: it is cordoned, or the first of them are evicted.
    DrainBegun,
    /// Its etcd member is a learner.
    EtcdMemberAdded,
    /// Its etcd member votes.
    EtcdMemberPromoted,
    /// Its etcd member is no longer in the list of members.
    EtcdMemberRemoved,
}

/// Why an operation on a node is not complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeFailure {
    /// Whether it was interrupted.
    pub interrupted: bool,
    /// One line for each thing that failed.
    pub errors: Vec<String>,
    /// Instructions, in this order.
    pub hints: Vec<String>,
}

/// The result of a host of a fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostOutcome {
    /// It already matched its states.
    Unchanged,
    /// It was changed and matches its states.
    Changed,
    /// It was interrupted.
    Stopped,
    /// It does not match its states.
    Failed,
    /// It could not be reached, and is not counted as a failure.
    Unreachable,
    /// It was not started.
    NotBegun,
}

impl HostOutcome {
    /// In tables and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Changed => "changed",
            Self::Stopped => "interrupted",
            Self::Failed => "failed",
            Self::Unreachable => "unreachable",
            Self::NotBegun => "not started",
        }
    }
}

impl fmt::Display for HostOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

pub(super) fn seconds<S: Serializer>(elapsed: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    // Milliseconds.
    serializer.serialize_f64((elapsed.as_secs_f64() * 1000.0).round() / 1000.0)
}

pub(super) fn from_seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let seconds = f64::deserialize(deserializer)?;
    Duration::try_from_secs_f64(seconds).map_err(serde::de::Error::custom)
}

impl Event {
    /// The host of the event; `None` for events of the whole run.
    pub fn host(&self) -> Option<&HostName> {
        match self {
            Self::RunBegun { .. } | Self::StopAsked | Self::PlanMade { .. } => None,
            Self::HostBegun { host }
            | Self::HostEnded { host, .. }
            | Self::NodeBegun { host, .. }
            | Self::NodeEnded { host, .. }
            | Self::Reached { host, .. }
            | Self::PhaseBegun { host, .. }
            | Self::PhaseEnded { host, .. }
            | Self::Acted { host, .. }
            | Self::Waiting { host, .. }
            | Self::Planned { host, .. }
            | Self::ResourceBegun { host, .. }
            | Self::ResourceDone { host, .. }
            | Self::ResourceFailed { host, .. } => Some(host),
        }
    }
}
