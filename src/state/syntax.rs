//! The reader of state files: YAML to [`StateFile`], before values are known.

use std::collections::BTreeMap;

use super::error::{Fault, StateError};
use super::expression;
use super::location::Position;
use super::mismatch::{self, Located, Mismatch};
use super::name::StateName;
use super::shared_key::{FILE_KEYS, SHARED_KEYS};
use super::state_file::{Each, FieldSyntax, ResourceSyntax, StateFile};
use super::syntax_fault::SyntaxFault;
use super::yaml::{MapKey, Node, Yaml};
use super::yaml_parser;
use crate::model::near::Near;
use crate::resource::contract::ensure::Ensure;

/// Reads one state file.
///
/// # Errors
/// Every fault that does not result from another one. An unknown kind is a fault of [`field`](super::field).
pub fn parse(name: &StateName, text: &str) -> Result<StateFile, Vec<StateError>> {
    let file = name.file();
    let mut reader = Reader { file: &file, errors: Vec::new() };
    let state = reader.state(name, text);
    match state {
        Some(state) if reader.errors.is_empty() => Ok(state),
        _ => Err(reader.errors),
    }
}

/// Continues after a fault, so that all faults of a file are found at once.
struct Reader<'a> {
    file: &'a str,
    errors: Vec<StateError>,
}

impl Reader<'_> {
    fn fault(&mut self, at: Position, fault: impl Into<Fault>) {
        self.errors.push(StateError::new(self.file, at, fault));
    }

    /// The value, or `None` and an error.
    fn keep<T, F: Into<SyntaxFault>>(&mut self, outcome: Result<T, (Position, F)>) -> Option<T> {
        outcome.map_err(|(at, fault)| self.fault(at, fault.into())).ok()
    }

    fn state(&mut self, name: &StateName, text: &str) -> Option<StateFile> {
        if let Some(at) = block_tag(text) {
            self.fault(at, SyntaxFault::BlockTag);
            return None;
        }
        let root = match yaml_parser::parse(text) {
            Ok(root) => root,
            Err(error) => {
                self.fault(error.position().unwrap_or(Position::START), error);
                return None;
            }
        };
        let Yaml::Map(entries) = &root.value else {
            self.fault(root.at, SyntaxFault::from(Mismatch::new("a state file", "a map", &root)));
            return None;
        };
        let mut state = StateFile {
            name: name.clone(),
            about: String::new(),
            requires: Vec::new(),
            resources: Vec::new(),
        };
        for (key, value) in entries {
            match key.name.as_str() {
                "about" => state.about = self.about(value)?,
                "requires" => state.requires = self.requires(value),
                "resources" => state.resources = self.resources(value),
                other => {
                    let near = Near::to(other, FILE_KEYS);
                    self.fault(key.at, SyntaxFault::UnknownKey { key: other.to_owned(), near });
                }
            }
        }
        for key in ["about", "resources"] {
            if !entries.iter().any(|(present, _)| present.name == key) {
                self.fault(root.at, SyntaxFault::MissingKey { key });
            }
        }
        Some(state)
    }

    fn about(&mut self, node: &Node) -> Option<String> {
        let about = self.keep(mismatch::string("about", node))?.value;
        if about.is_empty() || about.trim().contains('\n') {
            let found = if about.is_empty() { "an empty string" } else { "several lines" }.to_owned();
            let mismatch =
                Mismatch { what: "about".to_owned(), expected: "one sentence", found, written: None };
            self.fault(node.at, SyntaxFault::from(mismatch));
        }
        Some(about)
    }

    fn requires(&mut self, node: &Node) -> Vec<Located<StateName>> {
        let names = self.keep(mismatch::strings("requires", node)).unwrap_or_default();
        let parsed = names.into_iter().filter_map(|name| {
            let value = name.value.parse().map_err(|error| (name.at, SyntaxFault::Name(error)));
            self.keep(value.map(|value| Located { at: name.at, value }))
        });
        parsed.collect()
    }

    fn resources(&mut self, node: &Node) -> Vec<ResourceSyntax> {
        let Yaml::List(items) = &node.value else {
            self.fault(node.at, SyntaxFault::from(Mismatch::new("resources", "a list", node)));
            return Vec::new();
        };
        items.iter().filter_map(|item| self.resource(item)).collect()
    }

    fn resource(&mut self, node: &Node) -> Option<ResourceSyntax> {
        let entries = match &node.value {
            Yaml::Map(entries) => entries.split_first(),
            _ => None,
        };
        let Some(((kind, name), rest)) = entries else {
            let expected = "a map whose first key is its kind";
            self.fault(node.at, SyntaxFault::from(Mismatch::new("a resource", expected, node)));
            return None;
        };
        if SHARED_KEYS.iter().any(|key| key.name == kind.name) {
            self.fault(kind.at, SyntaxFault::KindNotFirst { key: kind.name.clone() });
            return None;
        }
        let what = format!("the name of {}", kind.name);
        let mut resource = ResourceSyntax {
            kind: Located { at: kind.at, value: kind.name.parse() },
            name: self.keep(mismatch::string(&what, name))?,
            ensure: Ensure::default(),
            when: None,
            each: None,
            after: Vec::new(),
            only_if_changed: None,
            sensitive: false,
            fields: BTreeMap::new(),
        };
        for (key, value) in rest {
            self.entry(&mut resource, key, value);
        }
        if resource.each.is_some() && !expression::is_template(&resource.name.value) {
            self.fault(resource.name.at, SyntaxFault::EachWithoutItem);
        }
        Some(resource)
    }

    fn entry(&mut self, resource: &mut ResourceSyntax, key: &MapKey, value: &Node) {
        match key.name.as_str() {
            "ensure" => resource.ensure = self.ensure(value).unwrap_or_default(),
            "when" => resource.when = self.expression("when", value),
            "each" => {
                resource.each = match &value.value {
                    Yaml::List(items) => Some(Each::Items(items.clone())),
                    _ => self.expression("each", value).map(Each::Expression),
                }
            }
            "after" => resource.after = self.keep(mismatch::strings("after", value)).unwrap_or_default(),
            "only_if_changed" => {
                resource.only_if_changed = self.keep(mismatch::strings("only_if_changed", value));
                if resource.only_if_changed.as_ref().is_some_and(Vec::is_empty) {
                    let mut mismatch = Mismatch::new("only_if_changed", "a list of ids", value);
                    mismatch.found = "an empty list".to_owned();
                    self.fault(value.at, SyntaxFault::from(mismatch));
                }
            }
            "sensitive" => match value.value {
                Yaml::Boolean(sensitive) => resource.sensitive = sensitive,
                _ => self
                    .fault(value.at, SyntaxFault::from(Mismatch::new("sensitive", "true or false", value))),
            },
            field => {
                resource.fields.insert(field.to_owned(), FieldSyntax { at: key.at, value: value.clone() });
            }
        }
    }

    fn ensure(&mut self, node: &Node) -> Option<Ensure> {
        let word = self.keep(mismatch::string("ensure", node))?;
        match word.value.as_str() {
            "present" => Some(Ensure::Present),
            "absent" => Some(Ensure::Absent),
            _ => {
                self.fault(word.at, SyntaxFault::UnknownEnsure { found: word.value });
                None
            }
        }
    }

    fn expression(&mut self, key: &'static str, node: &Node) -> Option<Located<String>> {
        let Yaml::String(value) = &node.value else {
            let expected = if key == "each" { "a list or an expression" } else { "an expression" };
            self.fault(node.at, SyntaxFault::from(Mismatch::new(key, expected, node)));
            return None;
        };
        if expression::is_template(value) {
            self.fault(node.at, SyntaxFault::BracesInExpression { key });
            return None;
        }
        Some(Located { at: node.at, value: value.clone() })
    }
}

/// The first `{%` that is not in a comment of its own line. Searched in the text, because it may break the YAML around
/// it, which would hide the cause.
fn block_tag(text: &str) -> Option<Position> {
    (1..).zip(text.lines()).filter(|(_, content)| !content.trim_start().starts_with('#')).find_map(
        |(line, content)| {
            let (before, _) = content.split_once("{%")?;
            Some(Position { line, column: before.chars().count() as u64 + 1 })
        },
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(
            pieces in prop::collection::vec(
                prop::sample::select(vec![
                    "about: x\n", "resources:\n", "  - ", "package: a\n", "    when: ", "{{ a }}", "{{", "}}", "{",
                    "[", "\"", "'", "|\n", ": ", ",", "&a ", "*a", "!!int ", "1.30", "\t", "#", "ä", "\n", "---\n", "? ",
                ]),
                0..12,
            )
        ) {
            let name: StateName = "a".parse().unwrap();
            if let Err(errors) = parse(&name, &pieces.concat()) {
                prop_assert!(!errors.is_empty());
            }
        }
    }
}
