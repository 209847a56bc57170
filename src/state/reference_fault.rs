//! What can be wrong between resources.

use super::hint::Hint;
use super::location::Location;
use crate::model::near::Near;
use crate::resource::contract::resource_id::{ResourceId, ResourceIdError};

/// A reference between resources that cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceFault {
    /// Not the id of a resource.
    #[error(transparent)]
    Id(#[from] ResourceIdError),
    /// No resource of the host has this id.
    #[error("{key}: no resource {id}{near}")]
    Unknown {
        /// The key of the reference.
        key: String,
        /// As written.
        id: ResourceId,
        /// The id that may have been meant.
        near: Near,
    },
    /// Whether it changes is not known yet when this resource runs.
    #[error("{key}: {id} does not run before this resource")]
    NotBefore {
        /// The key of the reference.
        key: String,
        /// The resource that runs later.
        id: ResourceId,
    },
    /// Two resources have the same id.
    #[error("duplicate resource {id}, first defined at {first}")]
    Duplicate {
        /// Of both resources.
        id: ResourceId,
        /// Where the other resource is.
        first: Location,
    },
    /// The manifest of a static pod would not change with the resources that it reacts to.
    #[error("restart_when_changed: the content does not contain {}", super::config_digest::PLACEHOLDER)]
    NoDigest,
    /// Resources run after each other.
    #[error("cycle of `after`: {cycle}")]
    Cycle {
        /// `a -> b -> a`: each runs after the next one.
        cycle: String,
    },
}

impl ReferenceFault {
    pub(super) fn hint(&self) -> Option<Hint> {
        match self {
            Self::NotBefore { id, .. } => Some(Hint::MoveUp { id: id.clone() }),
            Self::Id(ResourceIdError::Malformed(_)) => Some(Hint::WriteId),
            _ => None,
        }
    }

    pub(super) fn cycle<'a>(ids: impl IntoIterator<Item = &'a ResourceId>) -> Self {
        let mut names: Vec<_> = ids.into_iter().map(ToString::to_string).collect();
        names.extend(names.first().cloned());
        Self::Cycle { cycle: names.join(" -> ") }
    }
}
