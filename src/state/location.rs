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

impl Location {
    /// A file as a whole.
    pub fn of_file(file: impl Into<String>) -> Self {
        Self { file: file.into(), line: None, column: None }
    }

    /// A line of a file.
    pub fn of_line(file: impl Into<String>, line: u64) -> Self {
        Self { file: file.into(), line: Some(line), column: None }
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
