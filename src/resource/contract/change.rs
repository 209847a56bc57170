//! The outcome of comparing desired with observed.

use std::fmt;

use crate::resource::contract::step::{Access, AccountTool, Step};

/// The outcome of comparing one resource with what was observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing to do.
    NoChange {
        /// Continues the id: `has this content, owner and mode`.
        reason: String,
    },
    /// Something to do.
    Change(Change),
    /// It must not be done: an error of this host, and nothing after it runs.
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

    /// Adds the change of another part of the same resource.
    pub(in crate::resource) fn append(&mut self, mut other: Self) {
        self.differences.append(&mut other.differences);
        self.steps.append(&mut other.steps);
    }

    /// What differs between two accesses; `None` where nothing exists.
    pub(in crate::resource) fn access(&mut self, before: Option<&Access>, after: &Access) {
        let values = |access: &Access| {
            [
                ("mode", format!("{:04o}", access.mode)),
                ("owner", access.owner.clone()),
                ("group", access.group.clone()),
            ]
        };
        let before = before.map(values);
        for (index, (name, after)) in values(after).iter().enumerate() {
            let before = before.as_ref().map(|values| values[index].1.as_str());
            if before != Some(after) {
                self.field(name, before, Some(after));
            }
        }
    }

    /// `Verdict::Change`, or `Verdict::NoChange` with this reason where there is no step.
    pub(in crate::resource) fn into_verdict(self, reason: impl Into<String>) -> Verdict {
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
    /// `mode: 0644 → 0600`.
    Field {
        /// As it is shown; not always that of a field of a state file.
        name: String,
        /// `None` where there is nothing.
        before: Option<String>,
        /// `None` where it is removed.
        after: Option<String>,
    },
    /// The text of a file; shown as a unified diff.
    Text {
        /// A path of the host, or `~USER/` and a path in that user's home.
        path: String,
        /// Empty where there is no file.
        before: String,
        /// The desired text.
        after: String,
    },
    /// Content that must not be shown, or is not text, or is too large.
    Hidden {
        /// `content (sensitive)`, `content (binary, 12 KiB)`.
        what: String,
    },
}

/// Bytes of a value that a line has at most.
const LONG: usize = 120;

impl Difference {
    /// A resource and what differs, on one line: `file:/etc/a (content, mode: 0644 → 0600)`. Of long values, the name alone.
    pub fn line(resource: &str, differences: &[Self]) -> String {
        let differences: Vec<String> = differences.iter().map(Self::to_string).collect();
        if differences.is_empty() {
            resource.to_owned()
        } else {
            format!("{resource} ({})", differences.join(", "))
        }
    }
}

/// On one line, without the text of a file or of a script.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field { name, before, after } => {
                let [before, after] = [before, after].map(|value| value.as_deref().unwrap_or("(none)"));
                if [before, after].iter().any(|value| value.len() > LONG || value.contains('\n')) {
                    f.write_str(name)
                } else {
                    write!(f, "{name}: {before} → {after}")
                }
            }
            Self::Text { .. } => f.write_str("content"),
            Self::Hidden { what } => f.write_str(what),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_and_what_differs_take_one_line() {
        let field = |name: &str, after: &str| Difference::Field {
            name: name.to_owned(),
            before: None,
            after: Some(after.to_owned()),
        };
        let text = Difference::Text { path: "/a".to_owned(), before: String::new(), after: "b\n".to_owned() };
        let hidden = Difference::Hidden { what: "password (sensitive)".to_owned() };
        for (differences, line) in [
            (vec![], "x:a"),
            (vec![field("mode", "0600"), text], "x:a (mode: (none) → 0600, content)"),
            (vec![hidden], "x:a (password (sensitive))"),
            (vec![field("run", "a\nb")], "x:a (run)"),
            (vec![field("run", &"a".repeat(LONG + 1))], "x:a (run)"),
        ] {
            assert_eq!(Difference::line("x:a", &differences), line);
        }
    }
}
