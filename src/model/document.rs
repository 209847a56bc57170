//! A YAML file written by an operator, and its problems.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde_saphyr::Location;

use super::yaml_error;

/// A YAML file.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    /// As given by the operator; used in messages only.
    pub file: &'a str,
    /// One YAML document, UTF-8.
    pub text: &'a str,
}

/// Limit of the size of a file, in bytes.
pub const LARGEST: usize = 4 << 20;

/// Limit of nesting. Each level is a level of recursion of the parser, and a thread's stack may be 2 MiB.
pub const DEEPEST: usize = 24;

/// Why a file is not text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// Larger than [`LARGEST`].
    #[error("this file is {} MiB large; the limit is {} MiB", .bytes >> 20, LARGEST >> 20)]
    TooLarge {
        /// Size of the file.
        bytes: usize,
    },
    /// An invalid byte of UTF-8.
    #[error("invalid UTF-8 byte {byte:#04x}; save the file as UTF-8")]
    NotUtf8 {
        /// From 1.
        line: u64,
        /// From 1, in characters.
        column: u64,
        /// The first invalid one.
        byte: u8,
    },
    /// A NUL character, as in UTF-16.
    #[error("unexpected NUL character; save the file as UTF-8")]
    Nul {
        /// From 1.
        line: u64,
        /// From 1, in characters.
        column: u64,
    },
}

impl TextError {
    /// Line and column, from 1.
    pub fn position(&self) -> (u64, u64) {
        match self {
            Self::TooLarge { .. } => (1, 1),
            Self::NotUtf8 { line, column, .. } | Self::Nul { line, column } => (*line, *column),
        }
    }

    /// Suffix of a file name: `:3:7`.
    pub fn place(&self) -> String {
        let (line, column) = self.position();
        format!(":{line}:{column}")
    }
}

/// Decodes a file. A byte order mark at the start is removed (YAML 1.2, section 5.2).
///
/// # Errors
/// When it is too large, or not text.
pub fn text(bytes: Vec<u8>) -> Result<String, TextError> {
    if bytes.len() > LARGEST {
        return Err(TextError::TooLarge { bytes: bytes.len() });
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let bytes = error.into_bytes();
        let (line, column) = place_after(&String::from_utf8_lossy(&bytes[..valid]));
        TextError::NotUtf8 { line, column, byte: bytes.get(valid).copied().unwrap_or_default() }
    })?;
    if let Some((before, _)) = text.split_once('\0') {
        let (line, column) = place_after(before);
        return Err(TextError::Nul { line, column });
    }
    Ok(text.strip_prefix('\u{feff}').map_or(text.clone(), str::to_owned))
}

/// Replaces line breaks and other control characters by escapes.
pub fn one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(shown).collect())
}

/// Line and column of the position after a text.
fn place_after(before: &str) -> (u64, u64) {
    let last = before.rsplit('\n').next().unwrap_or_default();
    (before.matches('\n').count() as u64 + 1, last.chars().count() as u64 + 1)
}

/// The syntax of booleans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Booleans {
    /// `true` and `false` (YAML 1.2).
    Strict,
    /// Also `yes`, `on`, `no` and `off` (YAML 1.1), as in files written for Salt.
    Yaml11,
}

/// A problem with its location. Displays as `file:line:column: message`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// As in [`Document::file`].
    pub file: String,
    /// From 1; also 1 for a problem of the file as a whole.
    pub line: u64,
    /// From 1, in characters.
    pub column: u64,
    /// Lowercase, without a period.
    pub message: String,
}

/// All problems; never empty. Displays as one line each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl std::error::Error for Problems {}

impl Problems {
    /// Sorts by file and location.
    pub fn in_order(mut problems: Vec<Problem>) -> Self {
        problems.sort_by(|one, other| {
            (&one.file, one.line, one.column).cmp(&(&other.file, other.line, other.column))
        });
        Self(problems)
    }
}

impl<'a> Document<'a> {
    /// Parses the document. Duplicate keys are errors; unknown fields are errors where the type denies them.
    ///
    /// # Errors
    /// The first problem.
    pub fn parse<T: Deserialize<'a>>(&self, booleans: Booleans) -> Result<T, Problems> {
        let options = serde_saphyr::options! {
            strict_booleans: booleans == Booleans::Strict,
            budget: serde_saphyr::budget! { max_depth: DEEPEST },
            reject_unsupported_tags: true,
            with_snippet: false,
        };
        serde_saphyr::from_str_with_options(self.text, options)
            .map_err(|error| Problems(vec![self.problem(error.location(), yaml_error::explain(&error))]))
    }

    /// A problem at a location of this file.
    pub fn problem(&self, at: impl Into<Option<Location>>, message: impl Into<String>) -> Problem {
        let at = at.into().unwrap_or(Location::UNKNOWN);
        // Without a location it is a problem of the file as a whole.
        let (line, column) = (at.line().max(1), at.column().max(1));
        Problem { file: self.file.to_owned(), line, column, message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, one_line(&self.message))
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            write!(f, "{}{problem}", if index == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}
