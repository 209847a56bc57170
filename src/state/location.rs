//! Places in state files.

use std::fmt;

/// A place in a file. Shown as `states/etcd.yaml:7:5`, as editors and terminals understand it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// Below the root of the tree: `states/etcd.yaml`.
    pub file: String,
    /// Counted from 1; `None` where the fault is the file's as a whole.
    pub line: Option<u64>,
    /// Counted from 1, in characters; `None` where only the line is known.
    pub column: Option<u64>,
}

/// A line and a column, each counted from 1, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// 1 is the first.
    pub line: u64,
    /// 1 is the first.
    pub column: u64,
}

impl Position {
    /// Where a file begins.
    pub const START: Self = Self { line: 1, column: 1 };

    /// Of a byte of a text; of its end where the byte lies beyond it.
    pub fn of_offset(text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let (lines, last) = before
            .rsplit_once('\n')
            .map_or((0, before), |(lines, last)| (lines.matches('\n').count() + 1, last));
        Self { line: lines as u64 + 1, column: last.chars().count() as u64 + 1 }
    }
}

impl Location {
    /// A file as a whole.
    pub fn of_file(file: impl Into<String>) -> Self {
        Self { file: file.into(), line: None, column: None }
    }

    /// A place in a file.
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
