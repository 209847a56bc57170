//! Values of another type than expected.

use super::hint::Hint;
use super::location::Position;
use super::yaml::{Node, Yaml};

/// A value of another type, or one that is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} must be {expected}, not {found}")]
pub struct Mismatch {
    /// The key, or a description of the value.
    pub what: String,
    /// Continues "must be".
    pub expected: &'static str,
    /// A description of the value.
    pub found: String,
    /// A number as it is written.
    pub written: Option<String>,
}

impl Mismatch {
    pub(super) fn new(what: &str, expected: &'static str, node: &Node) -> Self {
        Self { what: what.to_owned(), expected, found: node.describe(), written: node.written.clone() }
    }

    pub(super) fn hint(&self) -> Option<Hint> {
        let written = self.written.clone()?;
        matches!(self.expected, STRING | STRINGS).then_some(Hint::QuoteNumber { written })
    }
}

const STRING: &str = "a string";
const STRINGS: &str = "a list of strings";

/// A value and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located<T> {
    /// Of the first character.
    pub at: Position,
    /// As read.
    pub value: T,
}

/// The value as a string.
pub(super) fn string(what: &str, node: &Node) -> Result<Located<String>, (Position, Mismatch)> {
    match &node.value {
        Yaml::String(value) => Ok(Located { at: node.at, value: value.clone() }),
        _ => Err((node.at, Mismatch::new(what, STRING, node))),
    }
}

/// The value as a list of strings.
pub(super) fn strings(what: &str, node: &Node) -> Result<Vec<Located<String>>, (Position, Mismatch)> {
    let Yaml::List(items) = &node.value else { return Err((node.at, Mismatch::new(what, STRINGS, node))) };
    items
        .iter()
        .map(|item| string(what, item).map_err(|(at, _)| (at, Mismatch::new(what, STRINGS, item))))
        .collect()
}
