//! All checks of a tree that need no host.
//!
//! It cannot check values that only a roster sets ([`open_values`] lists them), and keys of maps, such as
//! `cluster.versions.etdc`.

use std::collections::{BTreeMap, BTreeSet};

use super::error::StateError;
use super::expression;
use super::field::{self, Kinds, SOURCE};
use super::field_fault::FieldFault;
use super::include;
use super::library::Library;
use super::location::Location;
use super::name::StateName;
use super::reads::{self, Known};
use super::reference::{self, Placed};
use super::shape::Shapes;
use super::state_file::{ResourceSyntax, StateFile};
use super::top_fault::TopFault;
use super::tree::Tree;
use super::yaml::Yaml;
use crate::model::near::Near;
use crate::model::values::OWN_VALUES;

/// Every fault of a tree, in the order of files and lines, each once. `shapes` are the known values.
///
/// Faults between files (references, cycles, states that no role has) are checked only where the syntax of every file is
/// right: most would otherwise result from a reported one.
pub fn check(tree: &Tree, kinds: Kinds<'_>, shapes: &Shapes) -> Vec<StateError> {
    let (library, mut errors) = Library::of_the_correct(tree);
    let complete = errors.is_empty();
    // A template that is not text exists all the same.
    let broken = tree.faults.iter().filter_map(|fault| fault.at.file.strip_prefix("templates/"));
    let templates: BTreeSet<&str> = tree.templates().map(|(name, _)| name).chain(broken).collect();
    let known = Known { renderer: &library.renderer, templates: &templates, shapes };
    for file in library.files.values() {
        for resource in &file.resources {
            errors.extend(check_resource(known, kinds, (&file.name.file(), resource)));
        }
    }
    let mut includes = BTreeMap::new();
    for (name, text) in tree.templates() {
        let file = format!("templates/{name}");
        let faults = known.check_template(name, text);
        errors.extend(faults.into_iter().map(|(at, fault)| StateError::new(&file, at, fault)));
        includes.insert(name, include::included(text));
    }
    errors.extend(include::cycles(&includes));
    if complete {
        errors.extend(check_roles(&library));
    }
    let mut unique: BTreeMap<(Location, String), StateError> = BTreeMap::new();
    for error in errors {
        unique.entry((error.at.clone(), error.fault.to_string())).or_insert(error);
    }
    unique.into_values().collect()
}

/// The paths of the values that a tree reads and `shapes` does not know: a roster must set them. Values that every host
/// has, such as `node.name`, are not among them.
pub fn open_values(tree: &Tree, shapes: &Shapes) -> BTreeSet<String> {
    let (library, _) = Library::of_the_correct(tree);
    let resources = library.files.values().flat_map(|file| &file.resources);
    let mut paths: BTreeSet<String> =
        resources.flat_map(|resource| reads::reads(resource, &library.renderer)).collect();
    paths.extend(tree.templates().flat_map(|(name, _)| library.renderer.reads_of_template(name)));
    paths.retain(|path| match path.split_once('.') {
        Some((root @ ("cluster" | "node"), rest)) => {
            let own = rest.split('.').next().is_some_and(|word| OWN_VALUES.contains(&word));
            !(shapes.has(root) || root == "node" && own)
        }
        _ => false,
    });
    paths
}

fn check_resource(
    known: Known<'_>,
    kinds: Kinds<'_>,
    (file, resource): (&str, &ResourceSyntax),
) -> Vec<StateError> {
    let mut errors = Vec::new();
    let faults = field::check(resource, kinds).err().unwrap_or_default();
    errors.extend(faults.into_iter().map(|(at, fault)| StateError::new(file, at, fault)));
    let faults = known.check(resource);
    errors.extend(faults.into_iter().map(|(at, fault)| StateError::new(file, at, fault)));
    if let Some(source) = resource.fields.get(SOURCE)
        && let Yaml::String(template) = &source.value.value
        && !expression::is_template(template)
        && !known.templates.contains(template.as_str())
    {
        let near = Near::to(template, known.templates.iter().copied());
        let fault = FieldFault::NoTemplate { template: template.clone(), near };
        errors.push(StateError::new(file, source.value.at, fault));
    }
    errors
}

/// Checks each role alone, and then all together: a host may have any of them.
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
