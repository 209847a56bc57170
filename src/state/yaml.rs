//! YAML as a tree with the position of every value. A tree is needed because the fields of a resource depend on its kind.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::location::Position;

/// A value and its position.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Of the first character.
    pub at: Position,
    /// Without anchors and tags.
    pub value: Yaml,
    /// A number as it is written (`1.30`, `0644`).
    pub written: Option<String>,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Yaml {
    /// Empty, or `null`.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// An integer or a float.
    Number(serde_json::Number),
    /// Quoted or not.
    String(String),
    /// In the order of the document.
    List(Vec<Node>),
    /// In the order of the document; keys are unique.
    Map(Vec<(MapKey, Node)>),
}

/// A key and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapKey {
    /// Of the first character.
    pub at: Position,
    /// As a string.
    pub name: String,
}

impl Node {
    /// The value in a message: `a string`, `the number 1.30`.
    pub fn describe(&self) -> String {
        match &self.value {
            Yaml::Null => "an empty value".to_owned(),
            Yaml::Boolean(value) => value.to_string(),
            Yaml::Number(number) => {
                format!("the number {}", self.written.clone().unwrap_or_else(|| number.to_string()))
            }
            Yaml::String(_) => "a string".to_owned(),
            Yaml::List(_) => "a list".to_owned(),
            Yaml::Map(entries) if entries.is_empty() => "an empty map".to_owned(),
            Yaml::Map(_) => "a map".to_owned(),
        }
    }

    /// Calls `visit` with every string in this value, keys not included, and its position.
    pub fn each_string(&self, visit: &mut dyn FnMut(&str, Position)) {
        match &self.value {
            Yaml::String(text) => visit(text, self.at),
            Yaml::List(items) => items.iter().for_each(|item| item.each_string(visit)),
            Yaml::Map(entries) => entries.iter().for_each(|(_, value)| value.each_string(visit)),
            Yaml::Null | Yaml::Boolean(_) | Yaml::Number(_) => {}
        }
    }

    pub(super) fn record_numbers(&mut self, text: &str) {
        match &mut self.value {
            Yaml::Number(_) => {
                let ends = |c: char| c.is_whitespace() || matches!(c, ',' | ']' | '}' | '#');
                let line = text.lines().nth(usize::try_from(self.at.line).unwrap_or(0).saturating_sub(1));
                let skip = usize::try_from(self.at.column).unwrap_or(0).saturating_sub(1);
                self.written = line.map(|line| line.chars().skip(skip).take_while(|c| !ends(*c)).collect());
            }
            Yaml::List(items) => items.iter_mut().for_each(|item| item.record_numbers(text)),
            Yaml::Map(entries) => entries.iter_mut().for_each(|(_, value)| value.record_numbers(text)),
            Yaml::Null | Yaml::Boolean(_) | Yaml::String(_) => {}
        }
    }
}

pub(super) fn position(location: serde_saphyr::Location) -> Position {
    Position { line: location.line(), column: location.column() }
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
        number.map(Yaml::Number).ok_or_else(|| E::custom("the number is not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Yaml, E> {
        Ok(Yaml::String(value.to_owned()))
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
                Yaml::String(name) => name,
                Yaml::Null => String::new(),
                Yaml::Boolean(value) => value.to_string(),
                Yaml::Number(number) => number.to_string(),
                Yaml::List(_) | Yaml::Map(_) => return Err(A::Error::custom("a key must be a string")),
            };
            map.push((MapKey { at: key.at, name }, entries.next_value()?));
        }
        Ok(Yaml::Map(map))
    }
}
