//! Where the files of a package source lie, and those of the others.

use crate::resource::fields::given::{FieldError, Given};

/// The files of one source, and how the other sources of the host are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::resource) struct Layout {
    /// The file that names the source.
    pub source: String,
    /// The key that must have signed it.
    pub key: String,
    /// The file that says whom https is checked against, where that is not said in the source itself.
    pub ca: Option<String>,
    /// Patterns of the shell for all files that name sources.
    pub all: &'static str,
    /// Patterns of the shell for those that were disabled.
    pub disabled: &'static str,
}

/// What the files say; the key is the same for all sorts of source.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::resource) struct Texts {
    pub source: String,
    /// Of [`Layout::ca`]; `None` where the system's authorities are used.
    pub ca: Option<String>,
}

/// Makes the texts of one sort of source from the fields of its resource.
pub(in crate::resource) type MakeTexts = fn(&Layout, &Given) -> Result<Texts, FieldError>;

impl Layout {
    /// A script that takes the other sources out of use.
    pub fn disable_others(&self) -> String {
        self.each_other("mv -f -- \"$f\" \"$f.metalform-disabled\" || exit") + "true"
    }

    /// A script that brings back what [`Self::disable_others`] took out of use.
    pub fn enable_others(&self) -> String {
        self.each_disabled("mv -f -- \"$f\" \"${f%.metalform-disabled}\" || exit") + "true"
    }

    /// Does something with each other file `$f` that names a source: one of comments alone may stay.
    pub fn each_other(&self, action: &str) -> String {
        format!(
            "for f in {all}; do \
             if [ \"$f\" != {own} ] && grep -qs '^[[:space:]]*[^#[:space:]]' \"$f\"; then {action}; fi; done; ",
            all = self.all,
            own = self.source,
        )
    }

    /// Does something with each disabled file `$f`.
    pub fn each_disabled(&self, action: &str) -> String {
        format!("for f in {}; do if [ -e \"$f\" ]; then {action}; fi; done; ", self.disabled)
    }
}
