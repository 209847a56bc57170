//! Names of users and groups.

use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_values::FieldValues;

const REASON: &str = "use at most 32 letters, digits, '_', '-' and '.', beginning with a letter or '_'";

/// What useradd(8) and groupadd(8) of all distributions accept. A name that begins with a digit could be read as a
/// number.
fn fits(name: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    let inner = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    name.len() <= 32 && name.starts_with(first) && name.chars().all(inner)
}

/// The name of a resource that is the name of an account.
pub fn named(fields: &FieldValues, name: &str) -> Result<String, FieldError> {
    if fits(name) { Ok(name.to_owned()) } else { Err(fields.invalid_name(name, REASON)) }
}

/// Checks the names in a field.
pub fn check<'a>(
    fields: &FieldValues,
    field: &'static str,
    names: impl IntoIterator<Item = &'a String>,
) -> Result<(), FieldError> {
    match names.into_iter().find(|name| !fits(name)) {
        None => Ok(()),
        Some(name) => Err(fields.invalid(field, format!("invalid name {name:?}: {REASON}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_accepted_by_every_tool() {
        for good in ["root", "_apt", "systemd-network", "a.b", "www-data", "A1"] {
            assert!(fits(good), "{good}");
        }
        for bad in ["", "-rf", "1000", "a b", "a:b", "a\n", "ä", "it's", ".a", &"a".repeat(33)] {
            assert!(!fits(bad), "{bad:?}");
        }
    }
}
