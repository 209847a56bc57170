//! The fields that a kind takes: the table behind the check, the reference page and the JSON schema.

use serde_json::Value;

/// One field of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldSpec {
    /// As in a state file.
    pub name: &'static str,
    /// What its value must be.
    pub takes: FieldType,
    /// Whether a resource that should be present must have it.
    pub required: bool,
    /// One sentence for the reference page.
    pub about: &'static str,
}

impl FieldSpec {
    /// A field that may be left out.
    pub const fn optional(name: &'static str, takes: FieldType, about: &'static str) -> Self {
        Self { name, takes, required: false, about }
    }

    /// A field that may be left out only with `ensure: absent`.
    pub const fn required(name: &'static str, takes: FieldType, about: &'static str) -> Self {
        Self { name, takes, required: true, about }
    }
}

/// The type of the value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldType {
    /// A string.
    String,
    /// Permission bits as a string of three or four octal digits: `"0644"`.
    Mode,
    /// An integer.
    Integer,
    /// `true` or `false`.
    Boolean,
    /// A list of strings.
    StringList,
    /// A map of strings to strings.
    StringMap,
    /// Any value; the kind checks it.
    Any,
}

impl FieldType {
    /// Continues "must be".
    pub fn expected(self) -> &'static str {
        match self {
            Self::String => "a string",
            Self::Mode => "a quoted octal mode such as \"0644\"",
            Self::Integer => "an integer",
            Self::Boolean => "true or false",
            Self::StringList => "a list of strings",
            Self::StringMap => "a map of strings",
            Self::Any => "any value",
        }
    }

    /// Whether the value is of this type.
    pub fn accepts(self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Mode => value.as_str().is_some_and(|text| permission_bits(text).is_some()),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::Boolean => value.is_boolean(),
            Self::StringList => value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
            Self::StringMap => value.as_object().is_some_and(|map| map.values().all(Value::is_string)),
            Self::Any => true,
        }
    }
}

/// Three or four octal digits. A decimal number that lost its leading zero is not a mode.
pub fn permission_bits(text: &str) -> Option<u32> {
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
