//! Names of users and groups.

use crate::resource::fields::given::{FieldError, Given};

const REASON: &str = "use at most 32 letters, digits, '_', '-' and '.', and a letter or '_' first";

/// What useradd(8) and groupadd(8) of the distributions agree upon. A name that begins with a digit could be
/// taken for a number.
fn fits(name: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    let inner = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    name.len() <= 32 && name.starts_with(first) && name.chars().all(inner)
}

/// The name of a resource, which is such a name.
pub(in crate::resource) fn named(kind: &'static str, name: &str) -> Result<String, FieldError> {
    if fits(name) {
        Ok(name.to_owned())
    } else {
        Err(FieldError::Name { kind, name: name.to_owned(), reason: REASON })
    }
}

/// Names in a field, all of which must fit.
pub(in crate::resource) fn check<'a>(
    given: &Given,
    field: &'static str,
    names: impl IntoIterator<Item = &'a String>,
) -> Result<(), FieldError> {
    match names.into_iter().find(|name| !fits(name)) {
        None => Ok(()),
        Some(name) => Err(given.invalid(field, format!("{name:?} is no such name: {REASON}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_word_that_every_tool_takes() {
        for good in ["root", "_apt", "systemd-network", "a.b", "www-data", "A1"] {
            assert!(fits(good), "{good}");
        }
        for bad in ["", "-rf", "1000", "a b", "a:b", "a\n", "ä", "it's", ".a", &"a".repeat(33)] {
            assert!(!fits(bad), "{bad:?}");
        }
    }
}
