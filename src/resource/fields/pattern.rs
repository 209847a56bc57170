//! Regular expressions that a whole line must match.

use regex::Regex;

use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_values::FieldValues;

/// Two are equal where their text is.
#[derive(Debug, Clone)]
pub struct Pattern {
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
    /// An optional field that is a regular expression.
    pub fn field(fields: &FieldValues, field: &'static str) -> Result<Option<Self>, FieldError> {
        let Some(text) = fields.string(field) else { return Ok(None) };
        // The last line of the error is the reason; those above it show the expression.
        let regex = Regex::new(&format!("^(?:{text})$")).map_err(|error| {
            let error = error.to_string();
            let reason = error.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            fields.invalid(field, format!("invalid regular expression: {reason}"))
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
