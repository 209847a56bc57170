//! A value of another sort than is wanted, and the readers that find it out.

use super::hint::Hint;
use super::location::Position;
use super::yaml::{Node, Yaml};

/// A value that is not what must stand there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} must be {expected}, not {found}")]
pub struct Mismatch {
    /// The key that it belongs to.
    pub what: String,
    /// What must stand there.
    pub expected: &'static str,
    /// What does.
    pub found: String,
    /// The number as it was written, where text was wanted.
    pub written: Option<String>,
}

impl Mismatch {
    /// Of a value in a file.
    pub(super) fn new(what: &str, expected: &'static str, node: &Node) -> Self {
        Self { what: what.to_owned(), expected, found: node.describe(), written: node.written.clone() }
    }

    pub(super) fn hint(&self) -> Option<Hint> {
        let mut written = self.written.clone()?;
        if self.expected == MODE {
            // The octal digits of Python and YAML 1.2.
            written = written.replacen("0o", "0", 1);
        }
        let wants_text = matches!(self.expected, TEXT | TEXTS | TEXT_MAP | MODE);
        wants_text.then_some(Hint::QuoteNumber { written })
    }
}

pub(super) const TEXT: &str = "text";
pub(super) const TEXTS: &str = "a list of texts";
pub(super) const TEXT_MAP: &str = "a map of texts";
pub(super) const MODE: &str = "quoted octal digits like \"0644\"";

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located<T> {
    /// Its first character.
    pub at: Position,
    /// What it is.
    pub value: T,
}

/// The value as text.
pub(super) fn text(what: &str, node: &Node) -> Result<Located<String>, (Position, Mismatch)> {
    match &node.value {
        Yaml::Text(value) => Ok(Located { at: node.at, value: value.clone() }),
        _ => Err((node.at, Mismatch::new(what, TEXT, node))),
    }
}

/// The value as a list of texts.
pub(super) fn texts(what: &str, node: &Node) -> Result<Vec<Located<String>>, (Position, Mismatch)> {
    let Yaml::List(items) = &node.value else { return Err((node.at, Mismatch::new(what, TEXTS, node))) };
    items
        .iter()
        .map(|item| text(what, item).map_err(|(at, _)| (at, Mismatch::new(what, TEXTS, item))))
        .collect()
}
