//! The files of a package source, and those of the other sources of a host.

use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_values::FieldValues;

/// The paths of one source, and how the others are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLayout {
    /// The file that defines the source.
    pub source: String,
    /// The key that signs it.
    pub key: String,
    /// The file that sets the CA of https, where the source itself does not.
    pub ca: Option<String>,
    /// Shell patterns of all files that define sources.
    pub all: &'static str,
    /// Shell patterns of those that are disabled.
    pub disabled: &'static str,
}

/// The content of the files; that of the key is the same for all formats.
#[derive(Debug, PartialEq, Eq)]
pub struct Texts {
    pub source: String,
    /// Of [`SourceLayout::ca`]; `None` where the system's store is used.
    pub ca: Option<String>,
}

/// Makes the content of the files of one format.
pub type MakeTexts = fn(&SourceLayout, &FieldValues) -> Result<Texts, FieldError>;

impl SourceLayout {
    /// A script that disables the other sources.
    pub fn disable_others(&self) -> String {
        self.each_other("mv -f -- \"$f\" \"$f.metalform-disabled\" || exit") + "true"
    }

    /// A script that enables what [`Self::disable_others`] disabled.
    pub fn enable_others(&self) -> String {
        self.each_disabled("mv -f -- \"$f\" \"${f%.metalform-disabled}\" || exit") + "true"
    }

    /// Runs an action for each other file `$f` that defines a source; a file of comments alone is left out.
    pub fn each_other(&self, action: &str) -> String {
        format!(
            "for f in {all}; do \
             if [ \"$f\" != {own} ] && grep -qs '^[[:space:]]*[^#[:space:]]' \"$f\"; then {action}; fi; done; ",
            all = self.all,
            own = self.source,
        )
    }

    /// Runs an action for each disabled file `$f`.
    pub fn each_disabled(&self, action: &str) -> String {
        format!("for f in {}; do if [ -e \"$f\" ]; then {action}; fi; done; ", self.disabled)
    }
}
