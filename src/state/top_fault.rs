//! Faults of `states/top.yaml`, and of the set of state files.

use super::hint::Hint;
use super::mismatch::Mismatch;
use super::name::{StateName, StateNameError};
use super::stage::{Stage, StageError};
use crate::model::near::Near;

/// What is wrong with roles and their states.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TopFault {
    /// There is no `states/top.yaml`.
    #[error("this file is missing")]
    Missing,
    /// A role that is not one of the five, or not in the file.
    #[error("unknown role {role:?}{near}")]
    UnknownRole {
        /// As written.
        role: String,
        /// What may have been meant.
        near: Near,
    },
    /// A key that a role does not have.
    #[error("unknown key {key:?} of a role{near}")]
    UnknownKey {
        /// As written.
        key: String,
        /// What may have been meant.
        near: Near,
    },
    /// A state that has no file.
    #[error("there is no state {state}{near}")]
    UnknownState {
        /// As written.
        state: StateName,
        /// What may have been meant.
        near: Near,
    },
    /// A role extends itself.
    #[error("these roles extend each other: {cycle}")]
    ExtendsCycle {
        /// `a → b → a`.
        cycle: String,
    },
    /// A state requires itself.
    #[error("these states require each other: {cycle}")]
    RequiresCycle {
        /// `a → b → a`.
        cycle: String,
    },
    /// No role has it.
    #[error("no role has this state, and no state of a role requires it")]
    Unreached,
    /// A file that is not named like a state.
    #[error("this is not a state file: its name must be lowercase and end in .yaml")]
    StrayFile,
    /// A stage that does not exist.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// A state with two stages.
    #[error("state {state} is in stage {second} here, and in stage {first} elsewhere in this file")]
    TwoStages {
        /// The state.
        state: StateName,
        /// Its stage at its first mention.
        first: Stage,
        /// Its stage at this mention.
        second: Stage,
    },
    /// A value of the wrong type.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// Not a name.
    #[error(transparent)]
    Name(#[from] StateNameError),
}

impl TopFault {
    pub(super) fn hint(&self) -> Option<Hint> {
        match self {
            Self::Mismatch(mismatch) => mismatch.hint(),
            Self::Unreached => Some(Hint::NameState),
            _ => None,
        }
    }
}
