//! Why a document is not read as YAML.

use super::location::Position;

/// The first fault of a document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum YamlFault {
    /// A map has the same key twice.
    #[error("duplicate key {key:?}")]
    DuplicateKey {
        /// As written.
        key: String,
        /// Of the second occurrence.
        at: Option<Position>,
    },
    /// A scalar that begins with `{{` is not quoted, so YAML reads a map.
    #[error("{{{{ }}}} must be quoted: YAML reads a map here")]
    UnquotedExpression {
        /// Of the first brace.
        at: Position,
    },
    /// Any other fault.
    #[error("{reason}")]
    Malformed {
        /// The message of the parser.
        reason: String,
        /// Where the parser stopped.
        at: Option<Position>,
    },
}

impl YamlFault {
    /// `None` where the parser has none.
    pub fn position(&self) -> Option<Position> {
        match self {
            Self::DuplicateKey { at, .. } | Self::Malformed { at, .. } => *at,
            Self::UnquotedExpression { at } => Some(*at),
        }
    }
}
