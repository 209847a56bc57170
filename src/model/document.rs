//! A YAML file that a person wrote, and what is wrong with it.

use std::fmt;

use serde::Deserialize;
use serde_saphyr::{Error, Location, MessageFormatter, UserMessageFormatter};

/// A file's name (for messages only) and text.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    /// As the person gave it.
    pub file: &'a str,
    /// One YAML document.
    pub text: &'a str,
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
    /// From 1; 0 where the file as a whole is meant.
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
            with_snippet: false,
        };
        serde_saphyr::from_str_with_options(self.text, options)
            .map_err(|error| Problems(vec![self.problem(error.location(), message(&error))]))
    }

    /// A problem with what stands at a place of this file.
    pub fn problem(&self, at: impl Into<Option<Location>>, message: impl Into<String>) -> Problem {
        let at = at.into().unwrap_or(Location::UNKNOWN);
        Problem { file: self.file.to_owned(), line: at.line(), column: at.column(), message: message.into() }
    }
}

/// The parser's message without what only its own callers can act on.
fn message(error: &Error) -> String {
    match error.without_snippet() {
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("duplicate key `{key}`"),
        Error::SerdeUnknownField { field, expected, .. } => {
            format!("unknown field `{field}`; known here: {}", expected.join(", "))
        }
        Error::Unexpected { expected: "mapping start", .. } => "a mapping is expected here".to_owned(),
        Error::InvalidScalar { ty: "u8" | "u16" | "u32" | "u64", .. } => {
            "a whole number is expected here".to_owned()
        }
        error => UserMessageFormatter.format_message(error).into_owned(),
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.message),
            line => write!(f, "{}:{line}:{}: {}", self.file, self.column, self.message),
        }
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
