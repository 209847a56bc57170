//! The only thing that a run tells a reporter.

use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::name::HostName;

/// What has just happened. Events of one host come in order; hosts interleave. Programs get them with
/// `--log-format json`, durations in seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// A run over a fleet begins.
    RunBegun {
        /// How many hosts it is about.
        hosts: usize,
    },
    /// Somebody wants the run to stop: no further host begins, and no further resource.
    StopAsked,
    /// A host of a fleet is being reached.
    HostBegun {
        /// The host.
        host: HostName,
    },
    /// The work on a host of a fleet has ended.
    HostEnded {
        /// The host.
        host: HostName,
        /// How.
        outcome: HostOutcome,
        /// How many resources were changed.
        changed: usize,
        /// Since it began.
        #[serde(serialize_with = "seconds")]
        elapsed: Duration,
    },
    /// A phase of an operation begins.
    PhaseBegun {
        /// The host it is about.
        host: HostName,
        /// Its title.
        phase: String,
    },
    /// A phase holds, or has failed.
    PhaseEnded {
        /// The host it is about.
        host: HostName,
        /// Its title.
        phase: String,
        /// Since it began.
        #[serde(serialize_with = "seconds")]
        elapsed: Duration,
        /// Whether it holds.
        holds: bool,
    },
    /// A phase does something.
    Acted {
        /// The host it is about.
        host: HostName,
        /// What, as a sentence.
        action: String,
    },
    /// A phase waits; told when the wait begins, and now and then while it lasts.
    Waiting {
        /// The host it is about.
        host: HostName,
        /// What for, as a sentence.
        condition: String,
        /// What is there instead.
        last_seen: String,
        /// Since the wait began.
        #[serde(serialize_with = "seconds")]
        elapsed: Duration,
    },
    /// A host was compared with its states.
    Planned {
        /// The host.
        host: HostName,
        /// Ids of the resources to change, in order.
        changes: Vec<String>,
        /// How many need nothing.
        unchanged: usize,
    },
    /// Work on a resource begins.
    ResourceBegun {
        /// The host.
        host: HostName,
        /// `kind:name`.
        resource: String,
    },
    /// All steps of a resource are done.
    ResourceDone {
        /// The host.
        host: HostName,
        /// `kind:name`.
        resource: String,
    },
    /// A step of a resource failed; nothing after it runs on this host.
    ResourceFailed {
        /// The host.
        host: HostName,
        /// `kind:name`.
        resource: String,
        /// Exit status of the step.
        status: i32,
        /// The end of what it printed.
        output: String,
    },
}

/// How the work on a host of a fleet ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostOutcome {
    /// It was what it should be.
    Unchanged,
    /// It is what it should be now.
    Changed,
    /// It was asked to stop on the way.
    Stopped,
    /// It is not what it should be.
    Failed,
    /// It could not be reached, and was set aside.
    Unreachable,
    /// Nothing was begun with it.
    NotBegun,
}

impl HostOutcome {
    /// As people read it.
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

fn seconds<S: Serializer>(elapsed: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    // No more digits than anybody reads.
    serializer.serialize_f64((elapsed.as_secs_f64() * 1000.0).round() / 1000.0)
}

impl Event {
    /// The host that it is about; `None` when it is about the whole run.
    pub fn host(&self) -> Option<&HostName> {
        match self {
            Self::RunBegun { .. } | Self::StopAsked => None,
            Self::HostBegun { host }
            | Self::HostEnded { host, .. }
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
