//! `states/top.yaml`: which states a role has.

use std::collections::BTreeMap;

use super::error::{Fault, StateError};
use super::location::Position;
use super::mismatch::{self, Located, Mismatch};
use super::name::StateName;
use super::stage::Stage;
use super::state_file::StateFile;
use super::top_fault::TopFault;
use super::yaml::{MapKey, Node, Yaml};
use super::yaml_parser;
use crate::model::near::Near;

/// Its path below the root of the tree.
pub(super) const FILE: &str = "states/top.yaml";

/// The roles of a node. A label may have `control-plane` for `master`, a state file not.
pub(super) const ROLES: [&str; 6] = ["node", "etcd", "master", "mirror", "infra", "bootstrap"];

/// The states of every role.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Top {
    roles: BTreeMap<String, Role>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Role {
    /// Its place in the file.
    place: usize,
    extends: Option<Located<String>>,
    states: Vec<Staged>,
}

/// A state and its stage.
type Staged = (Stage, Located<StateName>);

impl Top {
    /// Reads the file.
    ///
    /// # Errors
    /// Every fault in it.
    pub fn parse(text: &str) -> Result<Self, Vec<StateError>> {
        let mut top = Self::default();
        let mut errors = Vec::new();
        let mut note = |at, fault: Fault| errors.push(StateError::new(FILE, at, fault));
        match yaml_parser::parse(text) {
            Ok(Node { value: Yaml::Map(roles), .. }) => {
                for (place, (key, node)) in roles.iter().enumerate() {
                    if !ROLES.contains(&key.name.as_str()) {
                        let near = Near::to(&key.name, ROLES);
                        note(key.at, TopFault::UnknownRole { role: key.name.clone(), near }.into());
                    }
                    match role(key, node) {
                        Ok(role) => drop(top.roles.insert(key.name.clone(), Role { place, ..role })),
                        Err((at, fault)) => note(at, fault.into()),
                    }
                }
            }
            Ok(root) => {
                let mismatch = Mismatch::new("top.yaml", "a map from roles to states", &root);
                note(root.at, TopFault::from(mismatch).into());
            }
            Err(error) => note(error.position().unwrap_or(Position { line: 1, column: 1 }), error.into()),
        }
        errors.extend(top.two_stages());
        if errors.is_empty() { Ok(top) } else { Err(errors) }
    }

    /// States that are mentioned with different stages.
    fn two_stages(&self) -> Vec<StateError> {
        let mut first: BTreeMap<&StateName, Stage> = BTreeMap::new();
        let mut errors = Vec::new();
        for (stage, state) in self.roles.values().flat_map(|role| &role.states) {
            let known = *first.entry(&state.value).or_insert(*stage);
            if known != *stage {
                let fault = TopFault::TwoStages { state: state.value.clone(), first: known, second: *stage };
                errors.push(StateError::new(FILE, state.at, fault));
            }
        }
        errors
    }

    /// The stage that the file gives a state.
    fn stage_of(&self, state: &StateName) -> Option<Stage> {
        let mut states = self.roles.values().flat_map(|role| &role.states);
        states.find(|(_, mentioned)| mentioned.value == *state).map(|(stage, _)| *stage)
    }

    /// The roles that are in the file.
    pub(super) fn roles(&self) -> Vec<&str> {
        self.roles.keys().map(String::as_str).collect()
    }

    /// The states of a host with these roles, each once, in the order to run: roles as the file has them, from top
    /// to bottom; what a role extends before its own, what a state requires before the state.
    ///
    /// Each comes with its stage; a state that no role mentions has the stage of the one that requires it.
    ///
    /// # Errors
    /// Unknown roles and states, and cycles.
    pub fn states(
        &self,
        roles: &[&str],
        files: &BTreeMap<StateName, StateFile>,
    ) -> Result<Vec<(Stage, StateName)>, Vec<StateError>> {
        let mut walk = Walk { files, order: Vec::new(), path: Vec::new(), errors: Vec::new() };
        let mut stages: BTreeMap<StateName, Stage> = BTreeMap::new();
        let mut roles = roles.to_vec();
        roles.sort_by_key(|role| self.roles.get(*role).map(|role| role.place));
        for role in roles {
            match self.with_extended(role) {
                Ok(chain) => {
                    for (stage, state) in chain.iter().flat_map(|role| &role.states) {
                        let before = walk.order.len();
                        walk.visit(state, FILE);
                        for added in walk.order.iter().skip(before) {
                            stages.insert(added.clone(), self.stage_of(added).unwrap_or(*stage));
                        }
                    }
                }
                Err(error) => walk.errors.push(error),
            }
        }
        if !walk.errors.is_empty() {
            return Err(walk.errors);
        }
        let staged = |state: StateName| (stages.get(&state).copied().unwrap_or(Stage::Base), state);
        Ok(walk.order.into_iter().map(staged).collect())
    }

    /// A role behind all those that it extends.
    fn with_extended(&self, name: &str) -> Result<Vec<&Role>, StateError> {
        let unknown = |name: &str| {
            let known = self.roles.keys().map(String::as_str);
            TopFault::UnknownRole { role: name.to_owned(), near: Near::to(name, known) }
        };
        let first = self.roles.get(name).ok_or_else(|| StateError::of_file(FILE, unknown(name)))?;
        let mut names = vec![name];
        let mut chain = vec![first];
        let mut current = first;
        while let Some(extends) = &current.extends {
            let seen = names.contains(&extends.value.as_str());
            names.push(&extends.value);
            if seen {
                let fault = TopFault::ExtendsCycle { cycle: names.join(" → ") };
                return Err(StateError::new(FILE, extends.at, fault));
            }
            current = self
                .roles
                .get(&extends.value)
                .ok_or_else(|| StateError::new(FILE, extends.at, unknown(&extends.value)))?;
            chain.push(current);
        }
        chain.reverse();
        Ok(chain)
    }
}

fn role(key: &MapKey, node: &Node) -> Result<Role, (Position, TopFault)> {
    let wrong = |(at, mismatch)| (at, TopFault::Mismatch(mismatch));
    let Yaml::Map(entries) = &node.value else {
        return Err(wrong((
            node.at,
            Mismatch::new(&key.name, "a map with states, and extends if need be", node),
        )));
    };
    let mut role = Role::default();
    for (key, value) in entries {
        match key.name.as_str() {
            "extends" => role.extends = Some(mismatch::string("extends", value).map_err(wrong)?),
            "states" => role.states = staged(value)?,
            other => {
                let near = Near::to(other, ["extends", "states"]);
                return Err((key.at, TopFault::UnknownKey { key: other.to_owned(), near }));
            }
        }
    }
    Ok(role)
}

/// A map from stages to lists of states; a plain list is of the stage `base`.
fn staged(node: &Node) -> Result<Vec<Staged>, (Position, TopFault)> {
    let Yaml::Map(stages) = &node.value else { return names(Stage::Base, "states", node) };
    let mut states = Vec::new();
    for (key, value) in stages {
        let stage = key.name.parse().map_err(|error| (key.at, TopFault::Stage(error)))?;
        states.extend(names(stage, &key.name, value)?);
    }
    Ok(states)
}

fn names(stage: Stage, key: &str, node: &Node) -> Result<Vec<Staged>, (Position, TopFault)> {
    let strings =
        mismatch::strings(key, node).map_err(|(at, mismatch)| (at, TopFault::Mismatch(mismatch)))?;
    strings
        .into_iter()
        .map(|name| {
            let value = name.value.parse().map_err(|error| (name.at, TopFault::Name(error)))?;
            Ok((stage, Located { at: name.at, value }))
        })
        .collect()
}

/// States that are named on the command line, not by a role.
pub(super) fn with_required(
    states: &[StateName],
    files: &BTreeMap<StateName, StateFile>,
) -> Result<Vec<StateName>, Vec<StateError>> {
    let unknown = |state: &StateName| {
        let near = Near::to(state.as_str(), files.keys().map(StateName::as_str));
        StateError::of_file("command line", TopFault::UnknownState { state: state.clone(), near })
    };
    let missing: Vec<StateError> =
        states.iter().filter(|state| !files.contains_key(*state)).map(unknown).collect();
    if !missing.is_empty() {
        return Err(missing);
    }
    let mut walk = Walk { files, order: Vec::new(), path: Vec::new(), errors: Vec::new() };
    for state in states {
        walk.visit(&Located { at: Position { line: 1, column: 1 }, value: state.clone() }, &state.file());
    }
    if walk.errors.is_empty() { Ok(walk.order) } else { Err(walk.errors) }
}

/// Depth first, so that what is required is placed before what requires it.
struct Walk<'a> {
    files: &'a BTreeMap<StateName, StateFile>,
    order: Vec<StateName>,
    path: Vec<&'a StateName>,
    errors: Vec<StateError>,
}

impl<'a> Walk<'a> {
    fn visit(&mut self, state: &Located<StateName>, file: &str) {
        if self.order.contains(&state.value) {
            return;
        }
        if let Some(start) = self.path.iter().position(|name| **name == state.value) {
            let cycle = self.path[start..].iter().copied().chain([&state.value]);
            let cycle = cycle.map(StateName::as_str).collect::<Vec<_>>().join(" → ");
            self.errors.push(StateError::new(file, state.at, TopFault::RequiresCycle { cycle }));
            return;
        }
        let files: &'a BTreeMap<_, _> = self.files;
        let Some((name, found)) = files.get_key_value(&state.value) else {
            let near = Near::to(state.value.as_str(), files.keys().map(StateName::as_str));
            let fault = TopFault::UnknownState { state: state.value.clone(), near };
            self.errors.push(StateError::new(file, state.at, fault));
            return;
        };
        self.path.push(name);
        for required in &found.requires {
            self.visit(required, &name.file());
        }
        self.path.pop();
        self.order.push(name.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> Vec<String> {
        Top::parse(text).unwrap_err().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_state_in_a_stage_that_does_not_exist_is_an_error_with_its_place() {
        let faults = faults("node:\n  states:\n    base: [a]\n    control-plan: [b]\n");
        assert!(
            faults[0].starts_with(
                "states/top.yaml:4:5: unknown stage \"control-plan\"; did you mean \"control-plane\"?"
            ),
            "{faults:?}"
        );
    }

    #[test]
    fn a_state_in_two_stages_is_an_error() {
        let faults = faults("etcd: {states: {etcd: [a]}}\nnode: {states: {base: [a]}}\n");
        assert_eq!(
            faults,
            ["states/top.yaml:2:24: state a is in stage base here, and in stage etcd elsewhere in this file"]
        );
    }

    #[test]
    fn what_a_state_requires_has_its_stage_unless_the_file_gives_it_another() {
        let top = Top::parse("node: {states: {proxy: [c], base: [b]}}\n").unwrap();
        let file = |name: &str, text: &str| {
            let name: StateName = name.parse().unwrap();
            (name.clone(), super::super::syntax::parse(&name, text).unwrap())
        };
        let files = BTreeMap::from([
            file("a", "about: A.\nresources: []\n"),
            file("b", "about: B.\nrequires: [c]\nresources: []\n"),
            file("c", "about: C.\nrequires: [a]\nresources: []\n"),
        ]);
        let states: Vec<(Stage, String)> =
            top.states(&["node"], &files).unwrap().into_iter().map(|(s, n)| (s, n.to_string())).collect();
        let expected = [(Stage::Proxy, "a"), (Stage::Proxy, "c"), (Stage::Base, "b")];
        assert_eq!(states, expected.map(|(stage, name)| (stage, name.to_owned())));
    }
}
