//! Compiles states with the values of one host to an ordered list of resources: [`instance`](super::instance) evaluates
//! each, [`link`](super::link) resolves their references.

use super::compiled::Compiled;
use super::error::StateError;
use super::field::{self, Kinds};
use super::instance::Evaluator;
use super::library::Library;
use super::link;
use super::name::StateName;
use super::top;
use super::top_fault::TopFault;
use crate::model::near::Near;
use crate::render::Value;

/// The resources of a host, in the order to run: the order of `states`, then that of each file; a resource with `after`
/// moves behind the resources that it names.
///
/// # Guarantees
/// Ids are unique. Every id in `only_if_changed`, `restart_when_changed` and `reload_when_changed` is that of a resource
/// that runs before. An id of a resource that `when` (or an empty `each`) leaves out is left out of these lists too; a
/// resource with all of its `only_if_changed` left out is itself left out, because it can never run.
///
/// `when` is evaluated once, before `each`, unless it reads `item`; then it is evaluated for each item.
///
/// # Errors
/// Every fault that does not result from another one.
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
            let spec = match field::check(resource, kinds) {
                Ok(spec) => spec,
                Err(faults) => {
                    errors.extend(faults.into_iter().map(|(at, fault)| StateError::new(&path, at, fault)));
                    continue;
                }
            };
            match evaluator.instances(resource, spec) {
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
