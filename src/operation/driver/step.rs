//! What the driver answers.

use std::time::Duration;

use super::outcome::RunOutcome;
use crate::operation::class::FailureClass;
use crate::operation::effect::{Action, Look};

/// What to do now, and when to ask again at the latest.
#[derive(Debug, Default)]
pub struct DriverStep {
    /// To be started now, side by side.
    pub effects: Vec<Effect>,
    /// When to take the next step if no effect ends before; `None`: when one ends.
    pub wake: Option<Duration>,
    /// For people, in order.
    pub notes: Vec<Note>,
    /// How the run ended; effects that are still in flight are dropped then.
    pub outcome: Option<RunOutcome>,
}

/// Something to perform.
#[derive(Debug, Clone)]
pub struct Effect {
    /// Unique within the run.
    pub number: u64,
    /// What.
    pub work: EffectKind,
    /// How long it may take.
    pub deadline: Duration,
}

/// A look or an action.
#[derive(Debug, Clone)]
pub enum EffectKind {
    /// Observe.
    Look(Look),
    /// Change.
    Act(Action),
}

/// Something for people to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A phase has its first effect or wait.
    PhaseBegun {
        /// Its title.
        phase: String,
    },
    /// A phase holds, or the run has ended without it.
    PhaseEnded {
        /// Its title.
        phase: String,
        /// Since its first effect.
        elapsed: Duration,
        /// Whether it holds.
        holds: bool,
    },
    /// An action was started.
    Acted {
        /// The phase.
        phase: String,
        /// The action.
        sentence: String,
    },
    /// Something is waited for: at the beginning of the wait, and now and then while it lasts.
    Waiting {
        /// The phase.
        phase: String,
        /// What for.
        condition: String,
        /// What is there instead.
        last_seen: String,
        /// Since the wait began.
        elapsed: Duration,
    },
    /// Something failed, and the run goes on without it.
    Warned {
        /// What was tried.
        what: String,
        /// Why it failed.
        reason: String,
    },
}

impl EffectKind {
    /// For people.
    pub fn sentence(&self) -> String {
        match self {
            Self::Look(look) => look.sentence(),
            Self::Act(action) => action.sentence(),
        }
    }

    /// Where a failure is to be looked for when nothing more is known.
    pub fn class(&self) -> FailureClass {
        match self {
            Self::Look(look) => look.class(),
            Self::Act(action) => action.class(),
        }
    }
}
