//! What resources say of each other, as far as that can be told without values.

use std::collections::BTreeMap;

use super::error::StateError;
use super::expression;
use super::hint::Hint;
use super::location::{Location, Position};
use super::name::{NameError, ResourceId};
use super::order::execution_order;
use super::syntax::Resource;
use super::yaml::Yaml;
use crate::model::near::Near;

/// The fields, of kinds that have them, that name resources whose change makes them act.
pub(super) const REACTIONS: [&str; 2] = ["restart_when_changed", "reload_when_changed"];

pub(super) const AFTER: &str = "after";
pub(super) const ONLY_IF_CHANGED: &str = "only_if_changed";

/// Why resources do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceFault {
    /// Not an id.
    #[error(transparent)]
    Name(#[from] NameError),
    /// No resource of this host has this id.
    #[error("{key} names {id}, which is not there{near}")]
    Unknown {
        /// The key that names it.
        key: String,
        /// As written.
        id: ResourceId,
        /// What may have been meant.
        near: Near,
    },
    /// Whether it changes is not known yet when this one runs.
    #[error("{key} names {id}, which does not run before this")]
    NotBefore {
        /// The key that names it.
        key: String,
        /// The one that runs later.
        id: ResourceId,
    },
    /// An id stands for two resources.
    #[error("{id} is already at {first}")]
    Duplicate {
        /// The id.
        id: ResourceId,
        /// Where the other one is.
        first: Location,
    },
    /// Resources wait for each other.
    #[error("these wait for each other: {circle}")]
    Circle {
        /// Ids, each after the next one.
        circle: String,
    },
}

impl ReferenceFault {
    pub(super) fn hint(&self) -> Option<Hint> {
        match self {
            Self::NotBefore { id, .. } => Some(Hint::MoveUp { id: id.clone() }),
            Self::Name(_) => Some(Hint::WriteId),
            _ => None,
        }
    }

    pub(super) fn circle<'a>(ids: impl IntoIterator<Item = &'a ResourceId>) -> Self {
        let mut names: Vec<_> = ids.into_iter().map(ToString::to_string).collect();
        names.extend(names.first().cloned());
        Self::Circle { circle: names.join(" after ") }
    }
}

/// A resource and the file that it stands in.
#[derive(Debug, Clone)]
pub(super) struct Placed<'a> {
    pub file: &'a str,
    pub resource: &'a Resource,
}

impl Placed<'_> {
    fn error(&self, at: Position, fault: ReferenceFault) -> StateError {
        StateError::new(self.file, at, fault)
    }

    /// Its id as written, which is its id unless its name has an expression.
    fn id(&self) -> ResourceId {
        ResourceId { kind: self.resource.kind.value.clone(), name: self.resource.name.value.clone() }
    }

    fn could_be(&self, id: &ResourceId) -> bool {
        self.resource.kind.value == id.kind && expression::could_become(&self.resource.name.value, &id.name)
    }

    /// Every reference that needs no evaluation: its key, its place, its text.
    fn references(&self) -> Vec<(&str, Position, &str)> {
        let shared = [
            (AFTER, self.resource.after.as_slice()),
            (ONLY_IF_CHANGED, self.resource.only_if_changed.as_deref().unwrap_or_default()),
        ];
        let mut all: Vec<_> = shared
            .into_iter()
            .flat_map(|(key, ids)| ids.iter().map(move |id| (key, id.at, id.value.as_str())))
            .collect();
        for key in REACTIONS {
            let Some(field) = self.resource.fields.get(key) else { continue };
            let Yaml::List(items) = &field.value.value else { continue };
            all.extend(items.iter().filter_map(|item| match &item.value {
                Yaml::Text(text) => Some((key, item.at, text.as_str())),
                _ => None,
            }));
        }
        all.retain(|(_, _, text)| !expression::is_template(text));
        all
    }
}

/// Every fault among the resources of one host, in the order of their states.
pub(super) fn check(resources: &[Placed<'_>]) -> Vec<StateError> {
    let mut errors = Vec::new();
    let mut after = vec![Vec::new(); resources.len()];
    let mut watched = Vec::new();
    for (index, placed) in resources.iter().enumerate() {
        for (key, at, text) in placed.references() {
            let id: ResourceId = match text.parse() {
                Ok(id) => id,
                Err(error) => {
                    errors.push(placed.error(at, ReferenceFault::Name(error)));
                    continue;
                }
            };
            let candidates: Vec<_> = (0..resources.len()).filter(|&n| resources[n].could_be(&id)).collect();
            if candidates.is_empty() {
                let known: Vec<_> = resources.iter().map(|other| other.id().to_string()).collect();
                let near = Near::to(text, known.iter().map(String::as_str));
                errors.push(placed.error(at, ReferenceFault::Unknown { key: key.to_owned(), id, near }));
            } else if key == AFTER {
                after[index].extend(candidates);
            } else {
                watched.push((index, key, at, id, candidates));
            }
        }
    }
    match execution_order(&after) {
        Ok(order) => {
            let rank: BTreeMap<_, _> = order.iter().enumerate().map(|(rank, index)| (*index, rank)).collect();
            for (index, key, at, id, candidates) in watched {
                if candidates.iter().all(|candidate| rank[candidate] >= rank[&index]) {
                    errors.push(
                        resources[index].error(at, ReferenceFault::NotBefore { key: key.to_owned(), id }),
                    );
                }
            }
        }
        Err(circle) => {
            let ids: Vec<_> = circle.iter().map(|&index| resources[index].id()).collect();
            let first = &resources[circle[0]];
            errors.push(first.error(first.resource.kind.at, ReferenceFault::circle(&ids)));
        }
    }
    errors
}

/// Ids that certainly stand for two resources: of those with `when`, at most one may hold on a host.
pub(super) fn duplicates(resources: &[Placed<'_>]) -> Vec<StateError> {
    let mut first: BTreeMap<ResourceId, &Placed<'_>> = BTreeMap::new();
    let mut errors = Vec::new();
    for placed in resources {
        let certain = placed.resource.when.is_none() && !expression::is_template(&placed.resource.name.value);
        if !certain {
            continue;
        }
        let id = placed.id();
        match first.get(&id) {
            Some(other) => {
                let first = Location::new(other.file, other.resource.kind.at);
                errors.push(placed.error(placed.resource.kind.at, ReferenceFault::Duplicate { id, first }));
            }
            None => {
                first.insert(id, placed);
            }
        }
    }
    errors
}
