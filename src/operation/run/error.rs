//! Why a run ended before every phase held.

use std::collections::BTreeMap;

use crate::operation::class::FailureClass;
use crate::operation::driver::RunFault;
use crate::operation::site::EffectError;

/// Why a run ended before every phase held.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A phase cannot hold. Of a failed effect only what the driver keeps of it: another process took that step.
    #[error(transparent)]
    Fault(RunFault),
    /// Something could not be observed or done.
    #[error("{phase}: could not {what}")]
    Effect {
        /// The title of the phase.
        phase: String,
        /// What was tried.
        what: String,
        /// Why not.
        #[source]
        source: Box<EffectError>,
    },
    /// It was cancelled.
    #[error("interrupted")]
    Interrupted,
    /// No phase has anything to do, and not all hold.
    #[error("no phase can continue; these do not hold: {}", phases.join(", "))]
    Stuck {
        /// Their titles.
        phases: Vec<String>,
    },
}

impl RunError {
    /// Decides the exit code; `None` where the blocker or the interruption does.
    pub fn class(&self) -> Option<FailureClass> {
        match self {
            Self::Fault(fault) => fault.class(),
            Self::Effect { source, .. } => Some(source.class()),
            Self::Interrupted => None,
            Self::Stuck { .. } => Some(FailureClass::Own),
        }
    }
}

/// The typed error of a fault; `errors` by the effects' numbers.
pub(in crate::operation) fn error(fault: RunFault, mut errors: BTreeMap<u64, EffectError>) -> RunError {
    if let RunFault::Effect { phase, what, number, .. } = &fault
        && let Some(source) = errors.remove(number)
    {
        return RunError::Effect { phase: phase.clone(), what: what.clone(), source: Box::new(source) };
    }
    RunError::Fault(fault)
}
