//! What can be wrong with a resource by itself, and with expressions and templates.

use super::hint::Hint;
use crate::model::near::Near;
use crate::resource::contract::kind::{Kind, UnknownKind};
use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_spec::FieldType;

/// A fault of a resource or a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldFault {
    /// No such kind.
    #[error(transparent)]
    Kind(#[from] UnknownKind),
    /// The fields are not those of the kind.
    #[error("{error}")]
    Field {
        /// The fault.
        error: FieldError,
        /// A number as it is written.
        written: Option<String>,
    },
    /// The name evaluates to an empty string.
    #[error("the name of {kind} must not be empty")]
    EmptyName {
        /// The kind of the resource.
        kind: Kind,
    },
    /// A template that is not in `templates/`.
    #[error("no template templates/{template}{near}")]
    NoTemplate {
        /// As written.
        template: String,
        /// The template that may have been meant.
        near: Near,
    },
    /// An expression reads a value that no host has.
    #[error("unknown value {root:?}{near}")]
    UnknownRoot {
        /// The first word of the expression.
        root: String,
        /// The root that may have been meant.
        near: Near,
    },
    /// An expression reads a field that its value has on no host.
    #[error("unknown value {value}{near}")]
    UnknownValue {
        /// Its path, up to the unknown field.
        value: String,
        /// The field that may have been meant.
        near: Near,
    },
    /// A filter that does not exist.
    #[error("unknown filter {name:?}")]
    UnknownFilter {
        /// As written.
        name: String,
    },
    /// A test that does not exist.
    #[error("unknown test {name:?}")]
    UnknownTest {
        /// As written.
        name: String,
    },
    /// Templates that include each other, or one that includes itself.
    #[error("include cycle: {cycle}")]
    IncludeCycle {
        /// `a -> b -> a`.
        cycle: String,
    },
}

impl FieldFault {
    pub(super) fn hint(&self) -> Option<Hint> {
        match self {
            Self::Field { error: FieldError::WrongType { expected, .. }, written: Some(written) } => {
                quoted(*expected, written)
            }
            Self::UnknownRoot { .. } => Some(Hint::Roots),
            Self::UnknownFilter { .. } | Self::UnknownTest { .. } => Some(Hint::Filters),
            Self::Kind(_)
            | Self::Field { .. }
            | Self::EmptyName { .. }
            | Self::NoTemplate { .. }
            | Self::UnknownValue { .. }
            | Self::IncludeCycle { .. } => None,
        }
    }
}

/// A number where a string is expected: quotes are missing.
fn quoted(expected: FieldType, written: &str) -> Option<Hint> {
    match expected {
        FieldType::String | FieldType::StringList | FieldType::StringMap => {
            Some(Hint::QuoteNumber { written: written.to_owned() })
        }
        // 0o644 is octal in Python and YAML 1.2.
        FieldType::Mode => Some(Hint::QuoteNumber { written: written.replacen("0o", "0", 1) }),
        FieldType::Integer | FieldType::Boolean | FieldType::Any => None,
    }
}
