//! What a comparison of desired and observed says.

use crate::resource::contract::step::{AccountTool, Step};

/// The outcome of comparing one resource with what was observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing to do, and why.
    NoChange {
        /// `file has this content, owner and mode`.
        reason: String,
    },
    /// To be done.
    Change(Change),
    /// It must not be done, and why: shown as an error of this host, and nothing after it runs.
    Refuse {
        /// `/etc/kubernetes is a regular file`.
        reason: String,
    },
}

/// A change, for people (what differs) and for the engine (the steps).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// What differs, in the order to show it.
    pub differences: Vec<Difference>,
    /// In the order to run.
    pub steps: Vec<Step>,
}

impl Change {
    pub(in crate::resource) fn field(&mut self, name: &str, before: Option<&str>, after: Option<&str>) {
        let [before, after] = [before, after].map(|value| value.map(str::to_owned));
        self.differences.push(Difference::Field { name: name.to_owned(), before, after });
    }

    pub(in crate::resource) fn account(&mut self, tool: AccountTool, arguments: Vec<String>) {
        self.steps.push(Step::Account { tool, arguments });
    }

    /// Adds what another part of the same resource needs.
    pub(in crate::resource) fn append(&mut self, mut other: Self) {
        self.differences.append(&mut other.differences);
        self.steps.append(&mut other.steps);
    }

    /// The verdict; where nothing differs it has this reason.
    pub(in crate::resource) fn or(self, reason: impl Into<String>) -> Verdict {
        if self.steps.is_empty() {
            Verdict::NoChange { reason: reason.into() }
        } else {
            Verdict::Change(self)
        }
    }
}

/// One field that differs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize)]
pub enum Difference {
    /// `mode: 0644 → 0600`. `before` is `None` where there was nothing.
    Field {
        /// Its name.
        name: String,
        /// Present value.
        before: Option<String>,
        /// Value to be; `None` where it goes.
        after: Option<String>,
    },
    /// The text of a file; shown as a unified diff.
    Text {
        /// The file: a path of the host, or one that begins with the name of the user in whose home it is.
        path: String,
        /// Present text, empty where there is no file.
        before: String,
        /// Text to be.
        after: String,
    },
    /// Content that must not be shown, or is not text, or is too large.
    Hidden {
        /// `content (sensitive)`, `content (binary, 12 KiB)`.
        what: String,
    },
}
