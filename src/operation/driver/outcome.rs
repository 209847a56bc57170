//! How a run ends.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::operation::class::FailureClass;
use crate::operation::contract::Blocker;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunOutcome {
    /// Every phase holds.
    Holds,
    /// A phase cannot hold.
    Failed(RunFault),
    /// It was interrupted.
    Interrupted,
}

/// Why a phase cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum RunFault {
    /// It will not hold without a person.
    #[error("{phase} is blocked")]
    Blocked {
        /// Its title.
        phase: String,
        /// Why.
        blocker: Blocker,
    },
    /// A condition did not come about in time.
    #[error("{phase}: waited {} s for {condition}; last seen: {last_seen}", elapsed.as_secs())]
    TimedOut {
        /// Its title.
        phase: String,
        /// What was waited for.
        condition: String,
        /// Decides the exit code.
        class: FailureClass,
        /// How long.
        elapsed: Duration,
        /// What was there instead.
        last_seen: String,
    },
    /// A condition will not come about.
    #[error("{phase}: gave up waiting for {condition}: {reason}")]
    Hopeless {
        /// Its title.
        phase: String,
        /// What was waited for.
        condition: String,
        /// Decides the exit code.
        class: FailureClass,
        /// Why not.
        reason: String,
    },
    /// An action succeeds, and is still required.
    #[error("{phase}: still required after {times} attempts: {action}")]
    Futile {
        /// Its title.
        phase: String,
        /// The action.
        action: String,
        /// Decides the exit code.
        class: FailureClass,
        /// How often it was done.
        times: usize,
    },
    /// An effect failed.
    #[error("{phase}: could not {what}: {reason}")]
    Effect {
        /// Its title.
        phase: String,
        /// What was tried.
        what: String,
        /// The effect's number.
        number: u64,
        /// Decides the exit code.
        class: FailureClass,
        /// Why, with its causes.
        reason: String,
    },
}

impl RunFault {
    /// The phase that cannot hold.
    pub fn phase(&self) -> &str {
        match self {
            Self::Blocked { phase, .. }
            | Self::TimedOut { phase, .. }
            | Self::Hopeless { phase, .. }
            | Self::Futile { phase, .. }
            | Self::Effect { phase, .. } => phase,
        }
    }

    /// Decides the exit code; `None` where the blocker does.
    pub fn class(&self) -> Option<FailureClass> {
        match self {
            Self::Blocked { .. } => None,
            Self::TimedOut { class, .. }
            | Self::Hopeless { class, .. }
            | Self::Futile { class, .. }
            | Self::Effect { class, .. } => Some(*class),
        }
    }
}
