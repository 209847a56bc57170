//! A YAML file that a person wrote, and what is wrong with it.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde_saphyr::Location;

use super::yaml_error;

/// A file's name (for messages only) and text.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    /// As the person gave it.
    pub file: &'a str,
    /// One YAML document.
    pub text: &'a str,
}

/// The largest file that is read, in bytes. What people write is a thousandth of it.
pub const LARGEST: usize = 4 << 20;

/// The deepest nesting that is read. Each level is one of the reader's recursion, and a thread's stack may be 2 MiB.
pub const DEEPEST: usize = 24;

/// Why a file is not something that a person wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// Larger than [`LARGEST`].
    #[error("this file has {} MiB; more than {} are not read", .bytes >> 20, LARGEST >> 20)]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// A byte that no UTF-8 text has there.
    #[error("the byte {byte:#04x} is not UTF-8 text; save the file as UTF-8")]
    NotUtf8 {
        /// Counted from 1.
        line: u64,
        /// Counted from 1, in characters.
        column: u64,
        /// The byte.
        byte: u8,
    },
    /// A character that no editor writes.
    #[error("there is a NUL character; save the file as UTF-8")]
    Nul {
        /// Counted from 1.
        line: u64,
        /// Counted from 1, in characters.
        column: u64,
    },
}

impl TextError {
    /// The line and the column, counted from 1.
    pub fn position(&self) -> (u64, u64) {
        match self {
            Self::TooLarge { .. } => (1, 1),
            Self::NotUtf8 { line, column, .. } | Self::Nul { line, column } => (*line, *column),
        }
    }

    /// What follows the name of a file: `:3:7`.
    pub fn place(&self) -> String {
        let (line, column) = self.position();
        format!(":{line}:{column}")
    }
}

/// The text of a file. A byte order mark at its beginning is dropped, as YAML 1.2 (section 5.2) has it.
///
/// # Errors
/// When it is too large, or no text.
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

/// The text without line breaks and what else a terminal would act upon: these are shown as escapes.
pub fn one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(shown).collect())
}

/// The line and the column of what follows a text.
fn place_after(before: &str) -> (u64, u64) {
    let last = before.rsplit('\n').next().unwrap_or_default();
    (before.matches('\n').count() as u64 + 1, last.chars().count() as u64 + 1)
}

/// Which words are booleans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Booleans {
    /// `true` and `false` (YAML 1.2).
    Strict,
    /// `yes`, `on`, `no` and `off` too (YAML 1.1), as files written for Salt have them.
    Yaml11,
}

/// One thing that is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file's name.
    pub file: String,
    /// From 1; the first line too where something is missing from the file as a whole.
    pub line: u64,
    /// From 1, in characters.
    pub column: u64,
    /// A lowercase fragment.
    pub message: String,
}

/// Everything that is wrong with what was read; never empty. Displays as one line each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl std::error::Error for Problems {}

impl Problems {
    /// By file, and by place in it.
    pub fn in_order(mut problems: Vec<Problem>) -> Self {
        problems.sort_by(|one, other| {
            (&one.file, one.line, one.column).cmp(&(&other.file, other.line, other.column))
        });
        Self(problems)
    }
}

impl<'a> Document<'a> {
    /// Reads it. Duplicate keys are errors; unknown fields are where the type denies them.
    ///
    /// # Errors
    /// The one problem that reading stopped at.
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

    /// A problem with what stands at a place of this file.
    pub fn problem(&self, at: impl Into<Option<Location>>, message: impl Into<String>) -> Problem {
        let at = at.into().unwrap_or(Location::UNKNOWN);
        // What has no place is missing from the file as a whole.
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
