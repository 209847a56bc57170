//! The result of compiling: one resource of one host.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json};

use super::location::{Location, Position};
use super::name::StateName;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::resource_id::ResourceId;

/// A resource with the values of one host: nothing is left to evaluate.
#[derive(Debug, Clone, PartialEq)]
pub struct Compiled {
    /// Unique on the host.
    pub id: ResourceId,
    /// Evaluated. `source` is replaced by `content`, the rendered template.
    pub fields: Map<String, Json>,
    pub ensure: Ensure,
    /// Whether its content must never be shown.
    pub sensitive: bool,
    /// It runs only if one of these changed. Empty where it always runs.
    pub only_if_changed: Vec<ResourceId>,
    /// Resources that run before it; the order of the list respects this.
    pub after: Vec<ResourceId>,
    /// Where it is defined.
    pub source: Location,
    /// Where the values of its fields are, in the same file.
    pub places: BTreeMap<String, Position>,
    /// The state that contains it.
    pub state: StateName,
}

impl Compiled {
    /// The ids in a field that lists resources; empty where it is not set.
    pub(super) fn ids(&self, field: &str) -> BTreeSet<ResourceId> {
        let ids = self.fields.get(field).and_then(Json::as_array).into_iter().flatten();
        ids.filter_map(|id| id.as_str()?.parse().ok()).collect()
    }
}
