//! Everything that can be known to be wrong with a tree while no host is present.
//!
//! What it cannot see: the values of a host (a misspelt `cluster.versions.etdc`), and names of filters and
//! functions, which minijinja looks up when it renders.

use std::collections::{BTreeMap, BTreeSet};

use super::error::StateError;
use super::expression;
use super::field::{self, FieldFault, Kinds, SOURCE};
use super::library::Library;
use super::location::Location;
use super::name::StateName;
use super::near::Near;
use super::reference::{self, Placed};
use super::roots;
use super::syntax::{Resource, StateFile};
use super::top::TopFault;
use super::tree::Tree;
use super::yaml::Yaml;

/// Every fault of a tree, in the order of files and lines, each once.
///
/// Faults between files (references, circles, states that no role has) are looked for only when each file by
/// itself is right: most would else follow from what is reported anyway.
pub fn check(tree: &Tree, kinds: Kinds<'_>) -> Vec<StateError> {
    let (library, mut errors) = Library::of_the_correct(tree);
    let complete = errors.is_empty();
    let templates: BTreeSet<&str> = tree.templates().map(|(name, _)| name).collect();
    for file in library.files.values() {
        for resource in &file.resources {
            errors.extend(check_resource(&library, &templates, kinds, (&file.name.file(), resource)));
        }
    }
    for name in &templates {
        let file = format!("templates/{name}");
        let faults = roots::check_template(name, &library.renderer);
        errors.extend(faults.into_iter().map(|fault| StateError::of_file(file.clone(), fault)));
    }
    if complete {
        errors.extend(check_roles(&library));
    }
    let mut unique: BTreeMap<(Location, String), StateError> = BTreeMap::new();
    for error in errors {
        unique.entry((error.at.clone(), error.fault.to_string())).or_insert(error);
    }
    unique.into_values().collect()
}

fn check_resource(
    library: &Library,
    templates: &BTreeSet<&str>,
    kinds: Kinds<'_>,
    (file, resource): (&str, &Resource),
) -> Vec<StateError> {
    let mut errors = Vec::new();
    let faults = field::check(resource, kinds);
    errors.extend(faults.into_iter().map(|(at, fault)| StateError::new(file, at, fault)));
    let faults = roots::check(resource, &library.renderer);
    errors.extend(faults.into_iter().map(|(at, fault)| StateError::new(file, at, fault)));
    if let Some(source) = resource.fields.get(SOURCE)
        && let Yaml::Text(template) = &source.value.value
        && !expression::is_template(template)
        && !templates.contains(template.as_str())
    {
        let near = Near::to(template, templates.iter().copied());
        let fault = FieldFault::NoTemplate { template: template.clone(), near };
        errors.push(StateError::new(file, source.value.at, fault));
    }
    errors
}

/// Each role alone, as a host may have no other; then all together, as a host may have them all.
fn check_roles(library: &Library) -> Vec<StateError> {
    let mut errors = Vec::new();
    let mut reached = BTreeSet::new();
    for role in library.top.roles() {
        match library.states_of(&[role]) {
            Ok(states) => {
                with_resources(library, &states, |resources| errors.extend(reference::check(resources)));
                reached.extend(states);
            }
            Err(faults) => errors.extend(faults),
        }
    }
    if errors.is_empty() {
        let all: Vec<_> = reached.iter().cloned().collect();
        with_resources(library, &all, |resources| errors.extend(reference::duplicates(resources)));
        let unreached = library.files.keys().filter(|name| !reached.contains(*name));
        errors.extend(unreached.map(|name| StateError::of_file(name.file(), TopFault::Unreached)));
    }
    errors
}

fn with_resources(library: &Library, states: &[StateName], then: impl FnOnce(&[Placed<'_>])) {
    let files: Vec<(String, &StateFile)> =
        states.iter().filter_map(|name| Some((name.file(), library.files.get(name)?))).collect();
    let placed: Vec<_> = files
        .iter()
        .flat_map(|(file, state)| state.resources.iter().map(|resource| Placed { file, resource }))
        .collect();
    then(&placed);
}
