//! YAML with the place of every value: what a state file is before anything is known of its meaning.
//!
//! The tree is needed because the fields of a resource depend on its kind, which another layer knows. Merge
//! keys are refused and only `true` and `false` are booleans, so that a file reads the same to everybody.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{DuplicateKeyPolicy, Error, MergeKeyPolicy, Spanned};

use super::location::Position;
use crate::model::{document, yaml_error};

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its first character.
    pub at: Position,
    /// What it is.
    pub value: Yaml,
    /// A number as it was written (`1.30`, `0644`), which its value has forgotten.
    pub written: Option<String>,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Yaml {
    /// Nothing, or `null`.
    Null,
    /// true or false.
    Boolean(bool),
    /// A number of any sort.
    Number(serde_json::Number),
    /// Quoted or not.
    Text(String),
    /// In its order.
    List(Vec<Node>),
    /// In its order; keys are unique.
    Map(Vec<(Key, Node)>),
}

/// A key and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Its first character.
    pub at: Position,
    /// The key.
    pub name: String,
}

/// Why a text is not the YAML that we read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum YamlError {
    /// A map has the same key twice.
    #[error("duplicate key {key:?}")]
    DuplicateKey {
        /// The key.
        key: String,
        /// Of the second one.
        at: Option<Position>,
    },
    /// A scalar that begins with `{{` is not quoted, so YAML takes it for a map.
    #[error("{{{{ }}}} is not quoted, so YAML reads a map here")]
    UnquotedExpression {
        /// Of its first brace.
        at: Position,
    },
    /// Anything else that the parser refuses.
    #[error("{reason}")]
    Malformed {
        /// In the parser's words.
        reason: String,
        /// Where it noticed.
        at: Option<Position>,
    },
}

impl YamlError {
    /// Where it is.
    pub fn position(&self) -> Option<Position> {
        match self {
            Self::DuplicateKey { at, .. } | Self::Malformed { at, .. } => *at,
            Self::UnquotedExpression { at } => Some(*at),
        }
    }
}

/// Reads one document.
///
/// # Errors
/// The first fault.
pub fn parse(text: &str) -> Result<Node, YamlError> {
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        strict_booleans: true,
        budget: serde_saphyr::budget! { max_depth: document::DEEPEST },
        reject_unsupported_tags: true,
        with_snippet: false,
    };
    let mut node: Node =
        serde_saphyr::from_str_with_options(text, options).map_err(|error| explain(text, &error))?;
    node.remember_numbers(text);
    Ok(node)
}

impl Node {
    /// What its value is, for people: `text`, `the number 1.30`.
    pub fn describe(&self) -> String {
        match &self.value {
            Yaml::Null => "nothing".to_owned(),
            Yaml::Boolean(value) => value.to_string(),
            Yaml::Number(number) => {
                format!("the number {}", self.written.clone().unwrap_or_else(|| number.to_string()))
            }
            Yaml::Text(_) => "text".to_owned(),
            Yaml::List(_) => "a list".to_owned(),
            Yaml::Map(entries) if entries.is_empty() => "an empty map".to_owned(),
            Yaml::Map(_) => "a map".to_owned(),
        }
    }

    /// Calls `visit` with every text in here, keys not included, and its place.
    pub fn each_text(&self, visit: &mut dyn FnMut(&str, Position)) {
        match &self.value {
            Yaml::Text(text) => visit(text, self.at),
            Yaml::List(items) => items.iter().for_each(|item| item.each_text(visit)),
            Yaml::Map(entries) => entries.iter().for_each(|(_, value)| value.each_text(visit)),
            Yaml::Null | Yaml::Boolean(_) | Yaml::Number(_) => {}
        }
    }

    fn remember_numbers(&mut self, text: &str) {
        match &mut self.value {
            Yaml::Number(_) => {
                let ends = |c: char| c.is_whitespace() || matches!(c, ',' | ']' | '}' | '#');
                let line = text.lines().nth(usize::try_from(self.at.line).unwrap_or(0).saturating_sub(1));
                let skip = usize::try_from(self.at.column).unwrap_or(0).saturating_sub(1);
                self.written = line.map(|line| line.chars().skip(skip).take_while(|c| !ends(*c)).collect());
            }
            Yaml::List(items) => items.iter_mut().for_each(|item| item.remember_numbers(text)),
            Yaml::Map(entries) => entries.iter_mut().for_each(|(_, value)| value.remember_numbers(text)),
            Yaml::Null | Yaml::Boolean(_) | Yaml::Text(_) => {}
        }
    }
}

fn position(location: serde_saphyr::Location) -> Position {
    Position { line: location.line(), column: location.column() }
}

fn explain(text: &str, error: &Error) -> YamlError {
    let at = error.location().map(position).filter(|at| at.line > 0);
    if let Error::DuplicateMappingKey { key: Some(key), .. } = error {
        return YamlError::DuplicateKey { key: key.clone(), at };
    }
    match unquoted_expression(text, at.map_or(0, |at| at.line)) {
        Some(at) => YamlError::UnquotedExpression { at },
        None => YamlError::Malformed { reason: yaml_error::explain(error), at },
    }
}

/// A `{{` where a value begins, on the line where the parser gave up or the one before it.
fn unquoted_expression(text: &str, near: u64) -> Option<Position> {
    let lines = (1..).zip(text.lines());
    lines.filter(|(number, _)| *number == near || number + 1 == near).find_map(|(line, content)| {
        let (before, _) = content.split_once("{{")?;
        let begins = before.trim_end();
        let value_begins = begins.is_empty() || begins.ends_with([':', '-', '[', ',']);
        let column = before.chars().count() as u64 + 1;
        value_begins.then_some(Position { line, column })
    })
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Yaml>::deserialize(deserializer)?;
        Ok(Self { at: position(spanned.referenced), value: spanned.value, written: None })
    }
}

impl<'de> Deserialize<'de> for Yaml {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(YamlVisitor)
    }
}

struct YamlVisitor;

impl<'de> Visitor<'de> for YamlVisitor {
    type Value = Yaml;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Yaml, E> {
        Ok(Yaml::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Yaml, E> {
        Ok(Yaml::Boolean(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Yaml, E> {
        Ok(Yaml::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Yaml, E> {
        Ok(Yaml::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Yaml, E> {
        let number = serde_json::Number::from_f64(value);
        number.map(Yaml::Number).ok_or_else(|| E::custom("this number is not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Yaml, E> {
        Ok(Yaml::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Yaml, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Yaml::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Yaml, A::Error> {
        let mut map = Vec::new();
        while let Some(key) = entries.next_key::<Node>()? {
            let name = match key.value {
                Yaml::Text(name) => name,
                Yaml::Null => String::new(),
                Yaml::Boolean(value) => value.to_string(),
                Yaml::Number(number) => number.to_string(),
                Yaml::List(_) | Yaml::Map(_) => return Err(A::Error::custom("a key must be text")),
            };
            map.push((Key { at: key.at, name }, entries.next_value()?));
        }
        Ok(Yaml::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_knows_its_place_and_numbers_their_spelling() {
        let node = parse("a: text\nb:\n  - 1.30\n  - 0644\n  - {c: yes, d: true}\n").unwrap();
        let Yaml::Map(entries) = &node.value else { panic!("{node:?}") };
        assert_eq!(entries[1].0, Key { at: Position { line: 2, column: 1 }, name: "b".to_owned() });
        let Yaml::List(items) = &entries[1].1.value else { panic!("{node:?}") };
        assert_eq!(items[0].at, Position { line: 3, column: 5 });
        assert_eq!(items[0].describe(), "the number 1.30");
        assert_eq!(items[1].describe(), "the number 0644");
        let Yaml::Map(inner) = &items[2].value else { panic!("{node:?}") };
        assert_eq!(inner[0].1.value, Yaml::Text("yes".to_owned()));
        assert_eq!(inner[1].1.value, Yaml::Boolean(true));
    }

    #[test]
    fn what_is_refused_is_refused_where_it_stands() {
        let mut said = Vec::new();
        for text in [
            "a: 1\nb: 2\na: 3\n",
            "a: {{ b }}\n",
            "a:\n  - {{ b[0] }}\n",
            "a: {{ b }}/c\n",
            "a: [x, {{ b }}]\n",
            "a: [x\nb: 2\n",
            "a: \"x\nb: 2\n",
            "base: &x {a: 1}\nb:\n  <<: *x\n",
            "? [a]\n: 2\n",
            "a: .nan\n",
            "a: 1\n---\nb: 2\n",
        ] {
            let error = parse(text).unwrap_err();
            said.push(format!("{text:?} -> {:?} {error}", error.position().map(|at| (at.line, at.column))));
        }
        insta::assert_snapshot!(said.join("\n"), @r#"
        "a: 1\nb: 2\na: 3\n" -> Some((3, 1)) duplicate key "a"
        "a: {{ b }}\n" -> Some((1, 4)) {{ }} is not quoted, so YAML reads a map here
        "a:\n  - {{ b[0] }}\n" -> Some((2, 5)) {{ }} is not quoted, so YAML reads a map here
        "a: {{ b }}/c\n" -> Some((1, 4)) {{ }} is not quoted, so YAML reads a map here
        "a: [x, {{ b }}]\n" -> Some((1, 8)) {{ }} is not quoted, so YAML reads a map here
        "a: [x\nb: 2\n" -> Some((2, 2)) illegal placement of ':' indicator
        "a: \"x\nb: 2\n" -> Some((2, 1)) a quoted string that starts above this line is not closed
        "base: &x {a: 1}\nb:\n  <<: *x\n" -> Some((3, 3)) << is not supported: write the fields out
        "? [a]\n: 2\n" -> None a key must be text
        "a: .nan\n" -> Some((1, 4)) value `.nan` is not a finite number
        "a: 1\n---\nb: 2\n" -> Some((3, 1)) unexpected second document
        "#);
    }
}
