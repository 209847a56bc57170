//! The fields that one resource was given, checked against its kind's table.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::model::near::Near;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::step::Access;
use crate::resource::fields::field::{FieldSort, FieldSpec};

/// Why fields do not make a resource.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// No kind has this name.
    #[error("unknown kind {kind:?}{near}")]
    UnknownKind {
        /// As written.
        kind: String,
        /// What may have been meant.
        near: Near,
    },
    /// The kind has no such field.
    #[error("unknown field {field:?} of {kind}{near}")]
    UnknownField {
        /// The kind.
        kind: &'static str,
        /// As written.
        field: String,
        /// What may have been meant.
        near: Near,
    },
    /// A required field was not given.
    #[error("{kind} needs the field {field:?}")]
    Missing {
        /// The kind.
        kind: &'static str,
        /// The field.
        field: &'static str,
    },
    /// A value of another sort than the field takes.
    #[error("field {field:?} of {kind} takes {expected}, not {found}")]
    WrongSort {
        /// The kind.
        kind: &'static str,
        /// The field.
        field: &'static str,
        /// What it takes.
        expected: &'static str,
        /// What was given.
        found: String,
    },
    /// A value of the right sort that makes no sense.
    #[error("field {field:?} of {kind}: {reason}")]
    Invalid {
        /// The kind.
        kind: &'static str,
        /// The field.
        field: &'static str,
        /// Why not.
        reason: String,
    },
    /// A name that the kind cannot have.
    #[error("{name:?} cannot be the name of a {kind}: {reason}")]
    Name {
        /// The kind.
        kind: &'static str,
        /// As written.
        name: String,
        /// Why not.
        reason: &'static str,
    },
    /// The kind has nothing to remove.
    #[error("a {kind} cannot be absent")]
    NotRemovable {
        /// The kind.
        kind: &'static str,
    },
}

impl FieldError {
    /// The field that is wrong, where one is.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::UnknownField { field, .. } => Some(field),
            Self::WrongSort { field, .. } | Self::Invalid { field, .. } => Some(field),
            _ => None,
        }
    }
}

/// Fields whose names and sorts are known to be right. A kind takes them by name.
#[derive(Debug)]
pub(in crate::resource) struct Given {
    kind: &'static str,
    values: Map<String, Value>,
    pub(in crate::resource) ensure: Ensure,
    pub(in crate::resource) sensitive: bool,
}

impl Given {
    /// Checks names and sorts. What is required may be left out of what should be absent.
    pub(in crate::resource) fn check(
        kind: &'static str,
        specs: &'static [FieldSpec],
        values: Map<String, Value>,
        ensure: Ensure,
        sensitive: bool,
    ) -> Result<Self, FieldError> {
        for (name, value) in &values {
            let Some(spec) = specs.iter().find(|spec| spec.name == name) else {
                let near = Near::to(name, specs.iter().map(|spec| spec.name));
                return Err(FieldError::UnknownField { kind, field: name.clone(), near });
            };
            check_sort(kind, spec, value)?;
        }
        let missing = specs.iter().find(|spec| spec.required && !values.contains_key(spec.name));
        match missing {
            Some(spec) if ensure == Ensure::Present => Err(FieldError::Missing { kind, field: spec.name }),
            _ => Ok(Self { kind, values, ensure, sensitive }),
        }
    }

    pub(in crate::resource) fn invalid(&self, field: &'static str, reason: impl Into<String>) -> FieldError {
        FieldError::Invalid { kind: self.kind, field, reason: reason.into() }
    }

    pub(in crate::resource) fn text(&self, field: &str) -> Option<String> {
        self.values.get(field).and_then(Value::as_str).map(str::to_owned)
    }

    /// A text that must be given.
    pub(in crate::resource) fn need(&self, field: &'static str) -> Result<String, FieldError> {
        self.text(field).ok_or(FieldError::Missing { kind: self.kind, field })
    }

    /// A text that stands in one line of a configuration file.
    pub(in crate::resource) fn need_line(&self, field: &'static str) -> Result<String, FieldError> {
        let text = self.need(field)?;
        if text.is_empty() || text.contains(char::is_control) {
            return Err(self.invalid(field, "it must be one line of text"));
        }
        Ok(text)
    }

    /// A text that stands between spaces in a configuration file.
    pub(in crate::resource) fn need_word(&self, field: &'static str) -> Result<String, FieldError> {
        let text = self.need_line(field)?;
        if text.contains(char::is_whitespace) {
            return Err(self.invalid(field, "it must be one word"));
        }
        Ok(text)
    }

    /// A text, or a number or boolean as text.
    pub(in crate::resource) fn need_scalar(&self, field: &'static str) -> Result<String, FieldError> {
        match self.values.get(field) {
            None => Err(FieldError::Missing { kind: self.kind, field }),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(value @ (Value::Number(_) | Value::Bool(_))) => Ok(value.to_string()),
            Some(_) => Err(self.invalid(field, "it must be a text or a number")),
        }
    }

    pub(in crate::resource) fn has(&self, field: &str) -> bool {
        self.values.contains_key(field)
    }

    pub(in crate::resource) fn boolean(&self, field: &str, default: bool) -> bool {
        self.optional_boolean(field).unwrap_or(default)
    }

    pub(in crate::resource) fn optional_boolean(&self, field: &str) -> Option<bool> {
        self.values.get(field).and_then(Value::as_bool)
    }

    pub(in crate::resource) fn days(&self, field: &'static str, default: u32) -> Result<u32, FieldError> {
        match self.values.get(field).and_then(Value::as_i64) {
            None => Ok(default),
            Some(days) => u32::try_from(days).map_err(|_| self.invalid(field, "it must be a number of days")),
        }
    }

    /// A whole number within limits.
    pub(in crate::resource) fn number(
        &self,
        field: &'static str,
        limits: RangeInclusive<u32>,
        default: u32,
    ) -> Result<u32, FieldError> {
        let Some(value) = self.values.get(field) else { return Ok(default) };
        value
            .as_u64()
            .and_then(|number| u32::try_from(number).ok())
            .filter(|number| limits.contains(number))
            .ok_or_else(|| {
                self.invalid(field, format!("it must be from {} to {}", limits.start(), limits.end()))
            })
    }

    /// The number of a user or group, when it was given; the last one stands for none (chown(2)).
    pub(in crate::resource) fn account_number(&self, field: &'static str) -> Result<Option<u32>, FieldError> {
        let given = self.values.contains_key(field);
        given.then(|| self.number(field, 0..=u32::MAX - 1, 0)).transpose()
    }

    /// Empty when it was not given.
    pub(in crate::resource) fn list(&self, field: &str) -> Vec<String> {
        let items = self.values.get(field).and_then(Value::as_array);
        items.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// The fields `owner`, `group` (both default to root) and `mode`.
    pub(in crate::resource) fn access(&self, default_mode: u32) -> Access {
        Access {
            owner: self.text("owner").unwrap_or_else(|| "root".to_owned()),
            group: self.text("group").unwrap_or_else(|| "root".to_owned()),
            mode: self.text("mode").and_then(|mode| permission_bits(&mode)).unwrap_or(default_mode),
        }
    }
}

fn check_sort(kind: &'static str, spec: &'static FieldSpec, value: &Value) -> Result<(), FieldError> {
    let (fits, expected) = match spec.sort {
        FieldSort::Text => (value.is_string(), "a text"),
        FieldSort::Mode => (
            value.as_str().is_some_and(|text| permission_bits(text).is_some()),
            "a quoted octal mode such as \"0644\"",
        ),
        FieldSort::Integer => (value.is_i64() || value.is_u64(), "a whole number"),
        FieldSort::Boolean => (value.is_boolean(), "true or false"),
        FieldSort::TextList => {
            (value.as_array().is_some_and(|items| items.iter().all(Value::is_string)), "a list of texts")
        }
        FieldSort::TextMap => {
            (value.as_object().is_some_and(|map| map.values().all(Value::is_string)), "a map of texts")
        }
        FieldSort::Any => (true, "anything"),
    };
    if !fits {
        return Err(FieldError::WrongSort { kind, field: spec.name, expected, found: value.to_string() });
    }
    if holds_nul(value) {
        let reason = "it holds a NUL character".to_owned();
        return Err(FieldError::Invalid { kind, field: spec.name, reason });
    }
    Ok(())
}

fn holds_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(holds_nul),
        Value::Object(map) => map.iter().any(|(key, value)| key.contains('\0') || holds_nul(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Three or four octal digits: a decimal number that lost its zero must not pass for a mode.
fn permission_bits(text: &str) -> Option<u32> {
    let octal = matches!(text.len(), 3 | 4) && text.bytes().all(|digit| (b'0'..=b'7').contains(&digit));
    octal.then(|| u32::from_str_radix(text, 8).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_three_or_four_octal_digits() {
        for (text, bits) in [("0644", Some(0o644)), ("600", Some(0o600)), ("1777", Some(0o1777))] {
            assert_eq!(permission_bits(text), bits, "{text}");
        }
        for text in ["", "64", "0o644", "0999", "+644", "00644", "rwx"] {
            assert_eq!(permission_bits(text), None, "{text}");
        }
    }
}
