//! A parsed tree: everything that compiling needs, parsed once for all hosts.

use std::collections::BTreeMap;

use super::error::StateError;
use super::name::StateName;
use super::stage::Stage;
use super::state_file::StateFile;
use super::syntax;
use super::top::{self, Top};
use super::top_fault::TopFault;
use super::tree::Tree;
use crate::render::{RenderError, Renderer, Value};
use crate::resource::contract::kind::Kind;

/// The states, the roles that have them, and the templates.
#[derive(Debug)]
pub struct Library {
    pub(super) top: Top,
    pub(super) files: BTreeMap<StateName, StateFile>,
    pub(super) renderer: Renderer,
}

impl Library {
    /// Parses a whole tree. A fault anywhere is a fault of the tree, even in a state that no host uses.
    ///
    /// # Errors
    /// Every fault of a file by itself; [`super::check`] finds more.
    pub fn read(tree: &Tree) -> Result<Self, Vec<StateError>> {
        let (library, errors) = Self::of_the_correct(tree);
        if errors.is_empty() { Ok(library) } else { Err(errors) }
    }

    /// The states of a host with these roles, in the order to run.
    ///
    /// # Errors
    /// A role that is not in `states/top.yaml`, a state without a file, or a cycle.
    pub fn states_of(&self, roles: &[&str]) -> Result<Vec<StateName>, Vec<StateError>> {
        Ok(self.staged(roles)?.into_iter().map(|(_, state)| state).collect())
    }

    /// The same, each with its stage.
    ///
    /// # Errors
    /// As [`Library::states_of`].
    pub fn staged(&self, roles: &[&str]) -> Result<Vec<(Stage, StateName)>, Vec<StateError>> {
        self.top.states(roles, &self.files)
    }

    /// These states, each once and after those that it requires.
    ///
    /// # Errors
    /// A state without a file, or a cycle.
    pub fn with_required(&self, states: &[StateName]) -> Result<Vec<StateName>, Vec<StateError>> {
        top::with_required(states, &self.files)
    }

    /// Renders a template that no resource uses: an object of the API.
    ///
    /// # Errors
    /// The template does not exist, or reads an undefined value.
    pub fn template(&self, name: &str, values: &Value) -> Result<String, RenderError> {
        self.renderer.template(name, values)
    }

    /// One sentence on the purpose of a state.
    pub fn about(&self, state: &StateName) -> Option<&str> {
        self.files.get(state).map(|file| file.about.as_str())
    }

    /// Whether any resource is of this kind.
    pub fn has_kind(&self, kind: Kind) -> bool {
        self.files.values().flat_map(|file| &file.resources).any(|resource| resource.kind.value == Ok(kind))
    }

    /// The files without faults, and the faults of the others.
    pub(super) fn of_the_correct(tree: &Tree) -> (Self, Vec<StateError>) {
        let (renderer, faults) = Renderer::of_the_correct(tree.templates());
        let mut errors = tree.faults.clone();
        errors.extend(faults.into_iter().map(StateError::of_template));
        let mut library = Self { top: Top::default(), files: BTreeMap::new(), renderer };
        let mut has_top = tree.faults.iter().any(|fault| fault.at.file == top::FILE);
        for (path, text) in tree.states() {
            if path == "top.yaml" {
                has_top = true;
                match Top::parse(text) {
                    Ok(top) => library.top = top,
                    Err(faults) => errors.extend(faults),
                }
                continue;
            }
            let Some(name) = path.strip_suffix(".yaml").and_then(|name| name.parse::<StateName>().ok())
            else {
                errors.push(StateError::of_file(format!("states/{path}"), TopFault::StrayFile));
                continue;
            };
            match syntax::parse(&name, text) {
                Ok(file) => drop(library.files.insert(name, file)),
                Err(faults) => errors.extend(faults),
            }
        }
        if !has_top {
            errors.push(StateError::of_file(top::FILE, TopFault::Missing));
        }
        (library, errors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(states: &[(&str, &str)]) -> Tree {
        let mut tree = Tree::default();
        tree.states.extend(states.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())));
        tree
    }

    #[test]
    fn extended_roles_and_required_states_come_first_and_once() {
        let library = Library::read(&tree(&[
            ("top.yaml", "node: {states: [kubelet]}\netcd: {extends: node, states: [etcd, containerd]}\n"),
            ("containerd.yaml", "about: Runs containers.\nresources: []\n"),
            ("etcd.yaml", "about: One member.\nresources: []\n"),
            ("kubelet.yaml", "about: Runs pods.\nrequires: [containerd]\nresources: []\n"),
        ]))
        .unwrap();
        let states = library.states_of(&["etcd", "node"]).unwrap();
        assert_eq!(
            states.iter().map(StateName::as_str).collect::<Vec<_>>(),
            ["containerd", "kubelet", "etcd"]
        );
        assert_eq!(library.about(&states[0]), Some("Runs containers."));
        let named = library.with_required(&["kubelet".parse().unwrap()]).unwrap();
        assert_eq!(named, states[..2]);
        let errors = library.with_required(&["etdc".parse().unwrap()]).unwrap_err();
        assert_eq!(errors[0].to_string(), "command line: there is no state etdc; did you mean \"etcd\"?");
        let errors = library.states_of(&["master", "nod"]).unwrap_err();
        let messages: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            messages,
            [
                "states/top.yaml: unknown role \"master\"",
                "states/top.yaml: unknown role \"nod\"; did you mean \"node\"?",
            ]
        );
    }

    #[test]
    fn a_tree_without_top_is_refused() {
        let errors = Library::read(&Tree::default()).unwrap_err();
        assert_eq!(errors[0].to_string(), "states/top.yaml: this file is missing");
    }
}
