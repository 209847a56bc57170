//! What a kind of resource may be told: the table behind the check, the reference page and the schema.

/// One field of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldSpec {
    /// As it is written in a state file.
    pub name: &'static str,
    /// What its value may be.
    pub sort: FieldSort,
    /// Whether it must be given.
    pub required: bool,
    /// One sentence for the reference page.
    pub about: &'static str,
}

/// What the value of a field may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldSort {
    /// A string.
    Text,
    /// Permission bits as a quoted octal string: `"0644"`.
    Mode,
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Boolean,
    /// A list of strings.
    TextList,
    /// A map of strings to strings.
    TextMap,
    /// Anything.
    Any,
}
