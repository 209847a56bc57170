//! The keys that are not fields of a kind.

/// The keys of a state file.
pub(super) const FILE_KEYS: [&str; 3] = ["about", "requires", "resources"];

/// A key that every resource may have, whatever its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedKey {
    /// As in a state file.
    pub name: &'static str,
    /// What its value must be.
    pub takes: &'static str,
    /// One sentence for the reference page.
    pub about: &'static str,
}

const fn shared(name: &'static str, takes: &'static str, about: &'static str) -> SharedKey {
    SharedKey { name, takes, about }
}

pub const SHARED_KEYS: [SharedKey; 6] = [
    shared("ensure", "present or absent", "Whether it must exist; present by default."),
    shared("when", "an expression", "The resource is left out where this is false."),
    shared(
        "each",
        "a list, or an expression that evaluates to one",
        "The resource is repeated; `item` is each item in turn.",
    ),
    shared("after", "a list of ids", "Resources that run before this one, wherever they are."),
    shared("only_if_changed", "a list of ids", "It runs only if one of these changed."),
    shared("sensitive", "true or false", "Whether its content must never be shown; false by default."),
];
