//! References between resources, checked as far as they do not depend on values.

use std::collections::BTreeMap;

use super::error::StateError;
use super::expression;
use super::location::{Location, Position};
use super::order::execution_order;
use super::reference_fault::ReferenceFault;
use super::state_file::ResourceSyntax;
use super::yaml::Yaml;
use crate::model::near::Near;
use crate::resource::contract::resource_id::ResourceId;

/// The fields of a kind that list resources whose change it reacts to.
pub(super) const REACTIONS: [&str; 2] = [RESTART_WHEN_CHANGED, "reload_when_changed"];

pub(super) const RESTART_WHEN_CHANGED: &str = "restart_when_changed";

pub(super) const AFTER: &str = "after";
pub(super) const ONLY_IF_CHANGED: &str = "only_if_changed";

/// A resource and its file.
#[derive(Debug, Clone)]
pub(super) struct Placed<'a> {
    pub file: &'a str,
    pub resource: &'a ResourceSyntax,
}

impl Placed<'_> {
    fn error(&self, at: Position, fault: ReferenceFault) -> StateError {
        StateError::new(self.file, at, fault)
    }

    /// Its id as written, which is its id unless the name contains an expression. `None` where the kind is unknown.
    fn id(&self) -> Option<ResourceId> {
        let kind = *self.resource.kind.value.as_ref().ok()?;
        Some(ResourceId { kind, name: self.resource.name.value.clone() })
    }

    fn could_be(&self, id: &ResourceId) -> bool {
        self.id().is_some_and(|own| own.kind == id.kind && expression::could_become(&own.name, &id.name))
    }

    /// Every reference without an expression: key, place, text.
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
                Yaml::String(text) => Some((key, item.at, text.as_str())),
                _ => None,
            }));
        }
        all.retain(|(_, _, text)| !expression::is_template(text));
        all
    }
}

/// The faults between the resources of one host, which are in the order of their states.
pub(super) fn check(resources: &[Placed<'_>]) -> Vec<StateError> {
    let mut errors = Vec::new();
    let mut after = vec![Vec::new(); resources.len()];
    let mut watched = Vec::new();
    for (index, placed) in resources.iter().enumerate() {
        for (key, at, text) in placed.references() {
            let id: ResourceId = match text.parse() {
                Ok(id) => id,
                Err(error) => {
                    errors.push(placed.error(at, ReferenceFault::Id(error)));
                    continue;
                }
            };
            let candidates: Vec<_> = (0..resources.len()).filter(|&n| resources[n].could_be(&id)).collect();
            if candidates.is_empty() {
                let known: Vec<_> =
                    resources.iter().filter_map(|other| Some(other.id()?.to_string())).collect();
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
        Err(cycle) => {
            let ids: Vec<_> = cycle.iter().filter_map(|&index| resources[index].id()).collect();
            let first = &resources[cycle[0]];
            errors.push(first.error(first.resource.kind.at, ReferenceFault::cycle(&ids)));
        }
    }
    errors
}

/// Ids of two resources that are both on a host. Of those with `when`, at most one may hold.
pub(super) fn duplicates(resources: &[Placed<'_>]) -> Vec<StateError> {
    let mut first: BTreeMap<ResourceId, &Placed<'_>> = BTreeMap::new();
    let mut errors = Vec::new();
    for placed in resources {
        let certain = placed.resource.when.is_none() && !expression::is_template(&placed.resource.name.value);
        if !certain {
            continue;
        }
        let Some(id) = placed.id() else { continue };
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
