//! The fields of one resource, checked against the table of its kind.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::model::near::Near;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::kind::Kind;
use crate::resource::contract::resource_id::ResourceId;
use crate::resource::contract::step::Access;
use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_spec::{FieldSpec, permission_bits};

/// Fields whose names and types are right. A kind takes them by name.
#[derive(Debug)]
pub struct FieldValues {
    kind: Kind,
    values: Map<String, Value>,
    pub ensure: Ensure,
    pub sensitive: bool,
}

impl FieldValues {
    /// Checks names and types. Required fields may be left out with `ensure: absent`.
    pub fn check(
        kind: Kind,
        specs: &'static [FieldSpec],
        values: Map<String, Value>,
        ensure: Ensure,
        sensitive: bool,
    ) -> Result<Self, FieldError> {
        for (name, value) in &values {
            let Some(spec) = specs.iter().find(|spec| spec.name == name) else {
                let near = Near::to(name, specs.iter().map(|spec| spec.name));
                return Err(FieldError::Unknown { kind, field: name.clone(), near });
            };
            check_value(kind, spec, value)?;
        }
        let missing = specs.iter().find(|spec| spec.required && !values.contains_key(spec.name));
        match missing {
            Some(spec) if ensure == Ensure::Present => Err(FieldError::Missing { kind, field: spec.name }),
            _ => Ok(Self { kind, values, ensure, sensitive }),
        }
    }

    pub fn invalid(&self, field: &'static str, reason: impl Into<String>) -> FieldError {
        FieldError::Invalid { kind: self.kind, field, reason: reason.into() }
    }

    pub fn invalid_name(&self, name: &str, reason: &'static str) -> FieldError {
        FieldError::Name { kind: self.kind, name: name.to_owned(), reason }
    }

    /// For kinds with nothing to remove.
    pub fn require_present(&self) -> Result<(), FieldError> {
        match self.ensure {
            Ensure::Present => Ok(()),
            Ensure::Absent => Err(FieldError::NotRemovable { kind: self.kind }),
        }
    }

    pub fn string(&self, field: &str) -> Option<String> {
        self.values.get(field).and_then(Value::as_str).map(str::to_owned)
    }

    /// A required string.
    pub fn need(&self, field: &'static str) -> Result<String, FieldError> {
        self.string(field).ok_or(FieldError::Missing { kind: self.kind, field })
    }

    /// A required string without control characters: it becomes part of one line of a configuration file.
    pub fn need_line(&self, field: &'static str) -> Result<String, FieldError> {
        let text = self.need(field)?;
        if text.is_empty() || text.contains(char::is_control) {
            return Err(self.invalid(field, "must be a single line"));
        }
        Ok(text)
    }

    /// A required string without white space: a configuration file separates it from others by spaces.
    pub fn need_word(&self, field: &'static str) -> Result<String, FieldError> {
        let text = self.need_line(field)?;
        if text.contains(char::is_whitespace) {
            return Err(self.invalid(field, "must be a single word"));
        }
        Ok(text)
    }

    /// A required string, or the text of a number or boolean.
    pub fn need_scalar(&self, field: &'static str) -> Result<String, FieldError> {
        match self.values.get(field) {
            None => Err(FieldError::Missing { kind: self.kind, field }),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(value @ (Value::Number(_) | Value::Bool(_))) => Ok(value.to_string()),
            Some(_) => Err(self.invalid(field, "must be a string or a number")),
        }
    }

    pub fn has(&self, field: &str) -> bool {
        self.values.contains_key(field)
    }

    pub fn boolean(&self, field: &str, default: bool) -> bool {
        self.optional_boolean(field).unwrap_or(default)
    }

    pub fn optional_boolean(&self, field: &str) -> Option<bool> {
        self.values.get(field).and_then(Value::as_bool)
    }

    pub fn days(&self, field: &'static str, default: u32) -> Result<u32, FieldError> {
        match self.values.get(field).and_then(Value::as_i64) {
            None => Ok(default),
            Some(days) => u32::try_from(days).map_err(|_| self.invalid(field, "must be a number of days")),
        }
    }

    pub fn integer(
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
                self.invalid(field, format!("must be from {} to {}", limits.start(), limits.end()))
            })
    }

    /// A user or group number. The largest 32-bit number means none (chown(2)), so it is refused.
    pub fn account_number(&self, field: &'static str) -> Result<Option<u32>, FieldError> {
        self.has(field).then(|| self.integer(field, 0..=u32::MAX - 1, 0)).transpose()
    }

    /// Empty where it is not set.
    pub fn list(&self, field: &str) -> Vec<String> {
        let items = self.values.get(field).and_then(Value::as_array);
        items.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// Empty where it is not set.
    pub fn ids(&self, field: &'static str) -> Result<Vec<ResourceId>, FieldError> {
        let parse = |id: String| id.parse().map_err(|error| self.invalid(field, format!("{error}")));
        self.list(field).into_iter().map(parse).collect()
    }

    /// The fields `owner`, `group` (both root by default) and `mode`.
    pub fn access(&self, default_mode: u32) -> Access {
        let root = Access::root(default_mode);
        Access {
            owner: self.string("owner").unwrap_or(root.owner),
            group: self.string("group").unwrap_or(root.group),
            mode: self.string("mode").and_then(|mode| permission_bits(&mode)).unwrap_or(root.mode),
        }
    }
}

fn check_value(kind: Kind, spec: &'static FieldSpec, value: &Value) -> Result<(), FieldError> {
    if !spec.takes.accepts(value) {
        let (expected, found) = (spec.takes, value.to_string());
        return Err(FieldError::WrongType { kind, field: spec.name, expected, found });
    }
    if contains_nul(value) {
        let reason = "must not contain a NUL character".to_owned();
        return Err(FieldError::Invalid { kind, field: spec.name, reason });
    }
    Ok(())
}

fn contains_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(contains_nul),
        Value::Object(map) => map.iter().any(|(key, value)| key.contains('\0') || contains_nul(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
