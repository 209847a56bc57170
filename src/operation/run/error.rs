//! Why a run ended before every phase held.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::operation::class::FailureClass;
use crate::operation::contract::Blocker;
use crate::operation::driver::RunFault;
use crate::operation::site::EffectError;

/// Why a run ended before every phase held.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A phase will not hold without a person.
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
    /// Something could not be observed or done.
    #[error("{phase}: could not {what}")]
    Effect {
        /// Its title.
        phase: String,
        /// What was tried.
        what: String,
        /// Why not.
        #[source]
        source: Box<EffectError>,
    },
    /// The same, in a step of this run that another process took.
    #[error("{phase}: could not {what}: {reason}")]
    Elsewhere {
        /// Its title.
        phase: String,
        /// What was tried.
        what: String,
        /// Decides the exit code.
        class: FailureClass,
        /// Why not.
        reason: String,
    },
    /// It was cancelled.
    #[error("interrupted")]
    Interrupted,
    /// No phase has anything to do, and not all hold.
    #[error("no phase can go on, and these do not hold: {}", phases.join(", "))]
    Stuck {
        /// Their titles.
        phases: Vec<String>,
    },
}

impl RunError {
    /// Decides the exit code; `None` where the blocker or the interruption does.
    pub fn class(&self) -> Option<FailureClass> {
        match self {
            Self::Blocked { .. } | Self::Interrupted => None,
            Self::TimedOut { class, .. }
            | Self::Hopeless { class, .. }
            | Self::Futile { class, .. }
            | Self::Elsewhere { class, .. } => Some(*class),
            Self::Effect { source, .. } => Some(source.class()),
            Self::Stuck { .. } => Some(FailureClass::Own),
        }
    }
}

/// The typed error of a fault; `errors` by the effects' numbers.
pub(in crate::operation) fn error(fault: RunFault, mut errors: BTreeMap<u64, EffectError>) -> RunError {
    match fault {
        RunFault::Blocked { phase, blocker } => RunError::Blocked { phase, blocker },
        RunFault::TimedOut { phase, condition, class, elapsed, last_seen } => {
            RunError::TimedOut { phase, condition, class, elapsed, last_seen }
        }
        RunFault::Hopeless { phase, condition, class, reason } => {
            RunError::Hopeless { phase, condition, class, reason }
        }
        RunFault::Futile { phase, action, class, times } => RunError::Futile { phase, action, class, times },
        RunFault::Effect { phase, what, number, class, reason } => match errors.remove(&number) {
            Some(source) => RunError::Effect { phase, what, source: Box::new(source) },
            None => RunError::Elsewhere { phase, what, class, reason },
        },
    }
}
