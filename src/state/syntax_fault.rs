//! What can be wrong with the syntax of a state file.

use super::hint::Hint;
use super::mismatch::Mismatch;
use super::name::StateNameError;
use crate::model::near::Near;

/// A fault of the syntax.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SyntaxFault {
    /// A template tag.
    #[error("{{% %}} is not allowed in a state file")]
    BlockTag,
    /// A required key is not set.
    #[error("missing key {key:?}")]
    MissingKey {
        /// Of a state file.
        key: &'static str,
    },
    /// A key that a state file does not have.
    #[error("unknown key {key:?}{near}")]
    UnknownKey {
        /// As written.
        key: String,
        /// The key that may have been meant.
        near: Near,
    },
    /// A value of another type.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// Neither of the two values.
    #[error("ensure must be present or absent, not {found:?}")]
    UnknownEnsure {
        /// As written.
        found: String,
    },
    /// The first key of a resource is a shared one.
    #[error("the first key of a resource must be its kind, not {key:?}")]
    KindNotFirst {
        /// The first key.
        key: String,
    },
    /// `{{ }}` around a bare expression.
    #[error("{key} is an expression and must not contain {{{{ }}}}")]
    BracesInExpression {
        /// `when` or `each`.
        key: &'static str,
    },
    /// All repetitions would have the same name.
    #[error("the name of a resource with each must contain {{{{ item }}}}")]
    EachWithoutItem,
    /// Not the name of a state.
    #[error(transparent)]
    Name(#[from] StateNameError),
}

impl SyntaxFault {
    pub(super) fn hint(&self) -> Option<Hint> {
        match self {
            Self::BlockTag => Some(Hint::MoveToTemplate),
            Self::Mismatch(mismatch) => mismatch.hint(),
            Self::BracesInExpression { key } => Some(Hint::WriteBareExpression { key }),
            Self::KindNotFirst { key } => Some(Hint::KindFirst { key: key.clone() }),
            Self::MissingKey { key: "about" } => Some(Hint::DescribeState),
            _ => None,
        }
    }
}
