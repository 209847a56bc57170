//! Locations in state files and templates.

use std::fmt;

/// A location in a file, displayed as `states/etcd.yaml:7:5`, which editors and terminals recognize.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// Below the root of the tree: `states/etcd.yaml`.
    pub file: String,
    /// Counted from 1; `None` for the file as a whole.
    pub line: Option<u64>,
    /// Counted from 1, in characters; `None` where only the line is known.
    pub column: Option<u64>,
}

/// A line and a column, each counted from 1, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: u64,
    pub column: u64,
}

impl Position {
    /// The first character of a file.
    pub const START: Self = Self { line: 1, column: 1 };

    /// Of a byte of a text, or of its end where the offset is beyond it.
    pub fn of_offset(text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let (lines, last) = before
            .rsplit_once('\n')
            .map_or((0, before), |(lines, last)| (lines.matches('\n').count() + 1, last));
        Self { line: lines as u64 + 1, column: last.chars().count() as u64 + 1 }
    }
}

impl Location {
    /// The file as a whole.
    pub fn of_file(file: impl Into<String>) -> Self {
        Self { file: file.into(), line: None, column: None }
    }

    /// A position in a file.
    pub fn new(file: impl Into<String>, at: Position) -> Self {
        Self { file: file.into(), line: Some(at.line), column: Some(at.column) }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        for number in [self.line, self.column].into_iter().flatten() {
            write!(f, ":{number}")?;
        }
        Ok(())
    }
}
