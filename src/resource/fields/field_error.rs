//! Why fields do not make a resource.

use crate::model::near::Near;
use crate::resource::contract::kind::Kind;
use crate::resource::fields::field_spec::FieldType;

/// The first thing that is wrong with the fields or the name of a resource.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// The kind has no such field.
    #[error("unknown field {field:?} of {kind}{near}")]
    Unknown {
        /// The kind of the resource.
        kind: Kind,
        /// As written.
        field: String,
        /// The field that may have been meant.
        near: Near,
    },
    /// A required field is not set.
    #[error("{kind} requires the field {field:?}")]
    Missing {
        /// The kind of the resource.
        kind: Kind,
        /// The field that is not set.
        field: &'static str,
    },
    /// A value of another type.
    #[error("field {field:?} of {kind} must be {}, not {found}", expected.expected())]
    WrongType {
        /// The kind of the resource.
        kind: Kind,
        /// The field with that value.
        field: &'static str,
        /// The type of the field.
        expected: FieldType,
        /// The value, or a description of it.
        found: String,
    },
    /// A value of the right type that the kind does not accept.
    #[error("field {field:?} of {kind}: {reason}")]
    Invalid {
        /// The kind of the resource.
        kind: Kind,
        /// The field with that value.
        field: &'static str,
        /// Which values are accepted.
        reason: String,
    },
    /// A name that the kind does not accept.
    #[error("invalid {kind} name {name:?}: {reason}")]
    Name {
        /// The kind of the resource.
        kind: Kind,
        /// As written.
        name: String,
        /// Which names are accepted.
        reason: &'static str,
    },
    /// The kind has nothing to remove.
    #[error("{kind} does not support `ensure: absent`")]
    NotRemovable {
        /// The kind of the resource.
        kind: Kind,
    },
}

impl FieldError {
    /// The field whose value is wrong, if it is one that is set.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::Unknown { field, .. } => Some(field),
            Self::WrongType { field, .. } | Self::Invalid { field, .. } => Some(field),
            Self::Missing { .. } | Self::Name { .. } | Self::NotRemovable { .. } => None,
        }
    }
}
