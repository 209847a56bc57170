//! Which strings are paths that metalform may change.

use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_values::FieldValues;

/// Directories that must never be removed with their content, besides `/` and those directly below it.
const PROTECTED: [&str; 10] = [
    "/etc/systemd",
    "/etc/ssh",
    "/usr/bin",
    "/usr/lib",
    "/usr/local",
    "/usr/sbin",
    "/usr/share",
    "/var/cache",
    "/var/lib",
    "/var/log",
];

/// Why a string is not such a path. Spaces, quotes, newlines and dashes are allowed.
fn fault(path: &str) -> Option<&'static str> {
    if !path.starts_with('/') {
        Some("must be an absolute path")
    } else if path.split('/').any(|part| part == ".." || part == ".") {
        Some("must not contain \".\" or \"..\"")
    } else if path.len() > 1 && path.ends_with('/') || path.contains("//") {
        Some("must not contain empty components")
    } else if path == "/" {
        Some("must not be the root directory")
    } else {
        None
    }
}

/// The name of a resource that is a path.
pub fn named(fields: &FieldValues, name: &str) -> Result<String, FieldError> {
    match fault(name) {
        None => Ok(name.to_owned()),
        Some(reason) => Err(fields.invalid_name(name, reason)),
    }
}

/// An optional field that is a path.
pub fn field(fields: &FieldValues, field: &'static str) -> Result<Option<String>, FieldError> {
    let path = fields.string(field);
    match path.as_deref().and_then(fault) {
        None => Ok(path),
        Some(reason) => Err(fields.invalid(field, reason)),
    }
}

/// Whether it is a directory that must never be removed with its content.
pub fn is_protected(path: &str) -> bool {
    path.matches('/').count() < 2 || PROTECTED.contains(&path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_names_are_paths_and_relative_ones_are_not() {
        for path in ["/a", "/with space", "/it's \"quoted\"", "/new\nline", "/ünïcode", "/-rf", "/a/..b"] {
            assert_eq!(fault(path), None, "{path:?}");
        }
        for path in ["", "a", "/", "/a/../b", "/a/./b", "/a/", "/a//b", "-rf", "~/a"] {
            assert!(fault(path).is_some(), "{path:?}");
        }
    }
}
