//! What a state file says, before kinds and values are known.

use std::collections::BTreeMap;

use super::error::{Fault, StateError};
use super::expression;
use super::hint::Hint;
use super::location::Position;
use super::mismatch::{self, Located, Mismatch};
use super::name::{NameError, StateName};
use super::yaml::{self, Key, Node, Yaml};
use crate::model::near::Near;
use crate::resource::contract::ensure::Ensure;

/// One file of `states/`.
#[derive(Debug, Clone, PartialEq)]
pub struct StateFile {
    /// After its path.
    pub name: StateName,
    /// One sentence, shown in plans.
    pub about: String,
    /// States that come before this one.
    pub requires: Vec<Located<StateName>>,
    /// In the order to run.
    pub resources: Vec<Resource>,
}

/// One entry of `resources`, as written.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// Its first key.
    pub kind: Located<String>,
    /// The value of its first key; may hold `{{ }}`.
    pub name: Located<String>,
    /// Whether it shall be or not be.
    pub ensure: Ensure,
    /// An expression; the resource is left out when it is false.
    pub when: Option<Located<String>>,
    /// What it is repeated for.
    pub each: Option<Each>,
    /// Ids of resources to run before this one, wherever they stand.
    pub after: Vec<Located<String>>,
    /// Ids; it runs only when one of them was changed. `None` when the key is not there.
    pub only_if_changed: Option<Vec<Located<String>>>,
    /// Whether what it holds must never be shown.
    pub sensitive: bool,
    /// The fields of its kind.
    pub fields: BTreeMap<String, Field>,
}

/// One field of a resource, as written.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Of its key.
    pub at: Position,
    /// What stands there.
    pub value: Node,
}

/// What a resource is repeated for; `item` is each one in turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Each {
    /// An expression that gives a list.
    Expression(Located<String>),
    /// The items themselves.
    Items(Vec<Node>),
}

/// Why a text is not a state file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SyntaxFault {
    /// `{%` stands somewhere.
    #[error("{{% %}} does not belong in a state file")]
    BlockTag,
    /// A key that must be there is not.
    #[error("{key} is missing")]
    MissingKey {
        /// The key.
        key: &'static str,
    },
    /// A key that means nothing here.
    #[error("unknown key {key:?}{near}")]
    UnknownKey {
        /// As written.
        key: String,
        /// What may have been meant.
        near: Near,
    },
    /// A value of the wrong sort.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// A word that is no choice.
    #[error("ensure must be present or absent, not {found:?}")]
    UnknownEnsure {
        /// As written.
        found: String,
    },
    /// A resource whose first key is a shared one.
    #[error("a resource begins with its kind, not with {key:?}")]
    KindNotFirst {
        /// The first key.
        key: String,
    },
    /// `{{ }}` around what is an expression anyway.
    #[error("{key} is an expression already: {{{{ }}}} does not belong in it")]
    BracesInExpression {
        /// `when` or `each`.
        key: &'static str,
    },
    /// A repeated resource that always has the same name.
    #[error("a resource with each needs an {{{{ item }}}} in its name")]
    EachWithoutItem,
    /// Not a name.
    #[error(transparent)]
    Name(#[from] NameError),
}

impl SyntaxFault {
    pub(super) fn hint(&self) -> Option<Hint> {
        match self {
            Self::BlockTag => Some(Hint::MoveToTemplate),
            Self::Mismatch(mismatch) => mismatch.hint(),
            Self::BracesInExpression { key } => Some(Hint::WriteBareExpression { key }),
            Self::KindNotFirst { key } => Some(Hint::KindFirst { key: key.clone() }),
            Self::MissingKey { key: "about" } => Some(Hint::SayWhatFor),
            _ => None,
        }
    }
}

/// The keys of a state file.
pub(super) const FILE_KEYS: [&str; 3] = ["about", "requires", "resources"];

/// A key that every resource may have, whatever its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedKey {
    /// As it is written in a state file.
    pub name: &'static str,
    /// What stands there, for people.
    pub takes: &'static str,
    /// One sentence for the reference page.
    pub about: &'static str,
}

const fn shared(name: &'static str, takes: &'static str, about: &'static str) -> SharedKey {
    SharedKey { name, takes, about }
}

/// All of them.
pub const SHARED_KEYS: [SharedKey; 6] = [
    shared("ensure", "present or absent", "Whether it must be there; present by default."),
    shared("when", "an expression", "The resource is left out where it is false."),
    shared(
        "each",
        "a list, or an expression that gives one",
        "The resource is repeated; `item` is each one in turn.",
    ),
    shared("after", "a list of ids", "Resources that run first, wherever they stand."),
    shared("only_if_changed", "a list of ids", "It runs only when one of these was changed."),
    shared("sensitive", "true or false", "Whether what it holds must never be shown; false by default."),
];

/// Reads one state file.
///
/// # Errors
/// Every fault that can be told apart from the others; none of `kind` and fields, which are not known here.
pub fn parse(name: &StateName, text: &str) -> Result<StateFile, Vec<StateError>> {
    let file = name.file();
    let mut reader = Reader { file: &file, errors: Vec::new() };
    let state = reader.state(name, text);
    match state {
        Some(state) if reader.errors.is_empty() => Ok(state),
        _ => Err(reader.errors),
    }
}

/// Goes on after a fault, so that all of a file are found at once.
struct Reader<'a> {
    file: &'a str,
    errors: Vec<StateError>,
}

impl Reader<'_> {
    fn fault(&mut self, at: Position, fault: impl Into<Fault>) {
        self.errors.push(StateError::new(self.file, at, fault));
    }

    /// Keeps what could be read, notes what could not.
    fn keep<T, F: Into<SyntaxFault>>(&mut self, outcome: Result<T, (Position, F)>) -> Option<T> {
        outcome.map_err(|(at, fault)| self.fault(at, fault.into())).ok()
    }

    fn state(&mut self, name: &StateName, text: &str) -> Option<StateFile> {
        if let Some(at) = block_tag(text) {
            self.fault(at, SyntaxFault::BlockTag);
            return None;
        }
        let root = match yaml::parse(text) {
            Ok(root) => root,
            Err(error) => {
                let start = Position { line: 1, column: 1 };
                self.fault(error.position().unwrap_or(start), error);
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
        let about = self.keep(mismatch::text("about", node))?.value;
        if about.is_empty() || about.trim().contains('\n') {
            let found = if about.is_empty() { "nothing" } else { "several lines" }.to_owned();
            let mismatch =
                Mismatch { what: "about".to_owned(), expected: "one sentence", found, written: None };
            self.fault(node.at, SyntaxFault::from(mismatch));
        }
        Some(about)
    }

    fn requires(&mut self, node: &Node) -> Vec<Located<StateName>> {
        let names = self.keep(mismatch::texts("requires", node)).unwrap_or_default();
        let parsed = names.into_iter().filter_map(|name| {
            let value = name.value.parse().map_err(|error| (name.at, SyntaxFault::Name(error)));
            self.keep(value.map(|value| Located { at: name.at, value }))
        });
        parsed.collect()
    }

    fn resources(&mut self, node: &Node) -> Vec<Resource> {
        let Yaml::List(items) = &node.value else {
            self.fault(node.at, SyntaxFault::from(Mismatch::new("resources", "a list", node)));
            return Vec::new();
        };
        items.iter().filter_map(|item| self.resource(item)).collect()
    }

    fn resource(&mut self, node: &Node) -> Option<Resource> {
        let entries = match &node.value {
            Yaml::Map(entries) => entries.split_first(),
            _ => None,
        };
        let Some(((kind, name), rest)) = entries else {
            let expected = "a map that begins with kind: name";
            self.fault(node.at, SyntaxFault::from(Mismatch::new("a resource", expected, node)));
            return None;
        };
        if SHARED_KEYS.iter().any(|key| key.name == kind.name) {
            self.fault(kind.at, SyntaxFault::KindNotFirst { key: kind.name.clone() });
            return None;
        }
        let what = format!("the name of a {}", kind.name);
        let mut resource = Resource {
            kind: Located { at: kind.at, value: kind.name.clone() },
            name: self.keep(mismatch::text(&what, name))?,
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

    fn entry(&mut self, resource: &mut Resource, key: &Key, value: &Node) {
        match key.name.as_str() {
            "ensure" => resource.ensure = self.ensure(value).unwrap_or_default(),
            "when" => resource.when = self.expression("when", value),
            "each" => {
                resource.each = match &value.value {
                    Yaml::List(items) => Some(Each::Items(items.clone())),
                    _ => self.expression("each", value).map(Each::Expression),
                }
            }
            "after" => resource.after = self.keep(mismatch::texts("after", value)).unwrap_or_default(),
            "only_if_changed" => {
                resource.only_if_changed = self.keep(mismatch::texts("only_if_changed", value));
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
                resource.fields.insert(field.to_owned(), Field { at: key.at, value: value.clone() });
            }
        }
    }

    fn ensure(&mut self, node: &Node) -> Option<Ensure> {
        let word = self.keep(mismatch::text("ensure", node))?;
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
        let Yaml::Text(value) = &node.value else {
            let expected = if key == "each" { "a list, or an expression" } else { "an expression" };
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

/// The first `{%` that is not in a comment of its own line. Looked for in the bare text, because what it
/// makes of the YAML around it would only hide it.
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
        fn no_text_is_too_strange_to_be_refused(
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
