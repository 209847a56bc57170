//! Which texts are paths that metalform may touch.

use crate::resource::fields::given::{FieldError, Given};

/// Directories of the system that have a second part and still must never go with all that is in them.
const KEPT: [&str; 10] = [
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

/// Why a text is not such a path; `None` when it is one. A path is data: spaces, quotes, newlines and
/// dashes are allowed.
fn fault(path: &str) -> Option<&'static str> {
    if !path.starts_with('/') {
        Some("a path must be absolute")
    } else if path.split('/').any(|part| part == ".." || part == ".") {
        Some("a path must not hold \".\" or \"..\"")
    } else if path.len() > 1 && path.ends_with('/') || path.contains("//") {
        Some("a path must not hold empty parts")
    } else if path == "/" {
        Some("the root directory is not managed")
    } else {
        None
    }
}

/// The name of a resource, which is a path.
pub(in crate::resource) fn named(kind: &'static str, name: &str) -> Result<String, FieldError> {
    match fault(name) {
        None => Ok(name.to_owned()),
        Some(reason) => Err(FieldError::Name { kind, name: name.to_owned(), reason }),
    }
}

/// A field that is a path, when it was given.
pub(in crate::resource) fn field(given: &Given, field: &'static str) -> Result<Option<String>, FieldError> {
    let path = given.text(field);
    match path.as_deref().and_then(fault) {
        None => Ok(path),
        Some(reason) => Err(given.invalid(field, reason)),
    }
}

/// Whether it is a directory that must never go with all that is in it.
pub(in crate::resource) fn is_of_the_system(path: &str) -> bool {
    path.matches('/').count() < 2 || KEPT.contains(&path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_names_are_paths_and_relative_ones_are_not() {
        for path in ["/a", "/with space", "/it's \"quoted\"", "/new\nline", "/ünïcode", "/-rf", "/a/..b"] {
            assert_eq!(named("file", path).as_deref(), Ok(path));
        }
        for path in ["", "a", "/", "/a/../b", "/a/./b", "/a/", "/a//b", "-rf", "~/a"] {
            assert!(named("file", path).is_err(), "{path:?}");
        }
    }
}
