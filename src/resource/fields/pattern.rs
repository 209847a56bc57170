//! Regular expressions that a whole line must match.

use regex::Regex;

use crate::resource::fields::given::{FieldError, Given};

/// An expression, equal to another by its text.
#[derive(Debug, Clone)]
pub(in crate::resource) struct Pattern {
    text: String,
    regex: Regex,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

impl Pattern {
    /// A field that is such an expression, when it was given.
    pub fn field(given: &Given, field: &'static str) -> Result<Option<Self>, FieldError> {
        let Some(text) = given.text(field) else { return Ok(None) };
        // The parts of its error below the expression itself are one line; the last says what is wrong.
        let regex = Regex::new(&format!("^(?:{text})$")).map_err(|error| {
            let error = error.to_string();
            let reason = error.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            given.invalid(field, format!("it is not a regular expression: {reason}"))
        })?;
        Ok(Some(Self { text, regex }))
    }

    pub fn matches(&self, line: &str) -> bool {
        self.regex.is_match(line)
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }
}
