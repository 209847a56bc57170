//! States and the values of one host become an ordered list of resources, in which nothing is left to
//! evaluate: [`instances`](super::instance) gives each its values, [`link`](super::link) ties them together.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use super::error::StateError;
use super::field;
use super::field::Kinds;
use super::instance::Evaluator;
use super::library::Library;
use super::link;
use super::location::{Location, Position};
use super::name::{ResourceId, StateName};
use super::top::{self, TopFault};
use crate::model::near::Near;
use crate::render::Value;
use crate::resource::contract::ensure::Ensure;

/// One resource of one host.
#[derive(Debug, Clone, PartialEq)]
pub struct Compiled {
    /// Unique on the host.
    pub id: ResourceId,
    /// The fields of its kind, evaluated. A field `source` has become `content`, the text of that template.
    pub fields: Map<String, Json>,
    /// Whether it shall be or not be.
    pub ensure: Ensure,
    /// Whether what it holds must never be shown.
    pub sensitive: bool,
    /// It runs only when one of these was changed. Empty when it always runs.
    pub only_if_changed: Vec<ResourceId>,
    /// What it waits for; the list is in an order that respects this.
    pub after: Vec<ResourceId>,
    /// Where it is written.
    pub source: Location,
    /// Where the values of its fields are, in the same file.
    pub places: BTreeMap<String, Position>,
    /// The state that has it.
    pub state: StateName,
}

/// The resources of a host, in the order to run: the order of `states`, then that of each file; a resource
/// with `after` has moved behind what it names.
///
/// # Guarantees
/// Ids are unique. Every id in `only_if_changed`, `restart_when_changed` and `reload_when_changed` is of a
/// resource that runs before. An id of a resource that `when` (or an empty `each`) left out is left out of
/// these lists as well; a resource whose whole `only_if_changed` was left out is itself left out, since
/// nothing can set it off.
///
/// `when` is asked once, before `each`, unless it reads `item`; then it is asked for each one.
///
/// # Errors
/// Every fault that can be told apart from the others, each with its place.
pub fn compile(
    library: &Library,
    states: &[StateName],
    kinds: Kinds<'_>,
    values: &Value,
) -> Result<Vec<Compiled>, Vec<StateError>> {
    let mut errors = Vec::new();
    let mut instances = Vec::new();
    let mut dropped = Vec::new();
    for state in states {
        let Some(file) = library.files.get(state) else {
            let near = Near::to(state.as_str(), library.files.keys().map(StateName::as_str));
            errors
                .push(StateError::of_file(top::FILE, TopFault::UnknownState { state: state.clone(), near }));
            continue;
        };
        let path = state.file();
        let evaluator = Evaluator { renderer: &library.renderer, values, state, file: &path };
        for resource in &file.resources {
            let faults = field::check(resource, kinds);
            let specs = field::of_kind(kinds, &resource.kind.value);
            let (true, Some(specs)) = (faults.is_empty(), specs) else {
                errors.extend(faults.into_iter().map(|(at, fault)| StateError::new(&path, at, fault)));
                continue;
            };
            match evaluator.instances(resource, specs) {
                Ok(outcome) => {
                    instances.extend(outcome.instances);
                    dropped.extend(outcome.left_out);
                }
                Err(error) => errors.push(error),
            }
        }
    }
    if errors.is_empty() { link::link(instances, &dropped) } else { Err(errors) }
}
