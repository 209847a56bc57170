//! The only thing that a run tells a reporter.

use std::time::Duration;

use serde::Serialize;

use super::name::HostName;

/// What has just happened. Events of one host come in order; hosts interleave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
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
