//! What a command was asked for: tables for people, JSON and YAML for programs.

use std::io::{IsTerminal, Write};

use clap::ValueEnum;
use serde::Serialize;

use super::failure::{Exit, Failure};
use crate::report::diff::Paint;

/// `-o`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Default)]
pub enum Format {
    /// Columns under upper-case heads, as kubectl prints them.
    #[default]
    Table,
    /// The same with more columns.
    Wide,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
    /// Names, one a line.
    Name,
}

/// Whether standard output may have colours: it is a terminal, and nobody said `NO_COLOR`.
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

/// Writes a document as JSON or YAML.
///
/// # Errors
/// When standard output is closed.
pub fn document<T: Serialize>(format: Format, document: &T) -> Result<(), Failure> {
    let bug = |error: &dyn std::error::Error| Failure::from_error(Exit::Bug, error);
    let text = match format {
        Format::Yaml => serde_saphyr::to_string(document).map_err(|error| bug(&error))?,
        _ => serde_json::to_string_pretty(document).map_err(|error| bug(&error))? + "\n",
    };
    print(&text)
}

/// What a command found or did on hosts, for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostsDocument<'a, T> {
    /// A field is only ever added within one version.
    api_version: &'static str,
    kind: &'static str,
    /// In the order of their names.
    hosts: &'a [T],
}

impl<'a, T: Serialize> HostsDocument<'a, T> {
    /// A document of this kind.
    pub fn new(kind: &'static str, hosts: &'a [T]) -> Self {
        Self { api_version: crate::model::api_contract::API_VERSION, kind, hosts }
    }
}

/// Columns as wide as their widest cell, three spaces between them, as kubectl has it.
pub fn table<R: AsRef<[String]>>(head: &[&str], rows: &[R]) -> String {
    let mut widths: Vec<usize> = head.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row.as_ref()) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> = cells.zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        format!("{}\n", padded.join("   ").trim_end())
    };
    let mut text = line(&mut head.iter().copied());
    for row in rows {
        text.push_str(&line(&mut row.as_ref().iter().map(String::as_str)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["node-1".to_owned(), "Ready".to_owned()], ["n".to_owned(), "NotReady".to_owned()]];
        assert_eq!(table(&["NAME", "STATUS"], &rows), "NAME     STATUS\nnode-1   Ready\nn        NotReady\n");
    }
}
