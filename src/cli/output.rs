//! What commands write to standard output: text for people, JSON and YAML for programs.

use std::io::{IsTerminal, Write};

use clap::ValueEnum;
use serde::Serialize;

use super::failure::{Exit, Failure};
use crate::report::diff::Paint;
use crate::report::document::{json, yaml};

/// The format of `-o`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Default)]
pub enum Format {
    /// Columns with upper-case headings, like kubectl.
    #[default]
    Table,
    /// The same with more columns.
    Wide,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
    /// Names, one per line.
    Name,
}

/// Colours if standard output is a terminal and `NO_COLOR` is not set (no-color.org).
pub fn paint() -> Paint {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if std::io::stdout().is_terminal() && !refused { Paint::Colours } else { Paint::Plain }
}

/// Writes text to standard output.
///
/// # Errors
/// When it is closed.
pub fn print(text: &str) -> Result<(), Failure> {
    std::io::stdout()
        .write_all(text.as_bytes())
        .map_err(|error| Failure::new(Exit::Configuration, format!("standard output: {error}")))
}

/// Writes a document as YAML where that is the format, otherwise as JSON.
///
/// # Errors
/// When standard output is closed.
pub fn document<T: Serialize>(format: Format, document: &T) -> Result<(), Failure> {
    let text = match format {
        Format::Yaml => yaml(document),
        _ => json(document),
    };
    print(&text.map_err(|error| Failure::from_error(Exit::Bug, &error))?)
}
