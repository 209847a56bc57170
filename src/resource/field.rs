//! What a kind says of its fields, for whoever reads state files.

/// One field of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldSpec {
    /// As written in a state file.
    pub name: &'static str,
    /// What may stand there.
    pub sort: FieldSort,
    /// Whether a resource that is to be present must have it.
    pub required: bool,
    /// One line for the reference page.
    pub about: &'static str,
}

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldSort {
    /// Text; a bare number is refused, because YAML may have changed it.
    Text,
    /// Permission bits as quoted octal digits: `"0644"`.
    Mode,
    /// A whole number.
    Integer,
    /// true or false.
    Boolean,
    /// A list of texts.
    TextList,
    /// A map from text to text.
    TextMap,
    /// Anything.
    Any,
}
