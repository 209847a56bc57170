//! A text file that other programs edit too: some of its lines are managed, all others stay unchanged.
//!
//! The whole text is written, made from the observed one, and only if the file is unchanged since. Owner, mode and
//! attributes stay. A link is refused rather than followed or replaced: its target usually belongs to a program
//! that rewrites it (`/etc/resolv.conf`), and an operator who means that file can use its path.

use crate::resource::contract::change::{Change, Difference};
use crate::resource::contract::context::Context;
use crate::resource::contract::probe::{Observed, PathState, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::{Access, Step};

/// Differs from every digest: the content is always needed.
const ALWAYS: &str = "";

/// The file whose lines are edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    pub path: String,
    /// Whether it is created where it is missing.
    pub create: bool,
    /// Whether its content must never be shown.
    pub sensitive: bool,
}

impl Edited {
    pub fn probe(&self) -> Probe {
        Probe::Path { path: self.path.clone(), unless_sha256: Some(ALWAYS.to_owned()) }
    }

    /// The text that the file will have when the resource is reached; `None` where it does not exist.
    pub fn text<'a>(
        &self,
        observed: &'a Observed,
        context: &Context<'a>,
    ) -> Result<Option<Text<'a>>, Refusal> {
        match observed.path(self.probe(), context.pending)? {
            PathState::Absent => Ok(None),
            PathState::File { content: None, .. } => Err(Refusal::TooLarge { path: self.path.clone() }),
            PathState::File { content: Some(content), sha256, .. } => match std::str::from_utf8(content) {
                Ok(text) if !text.contains('\0') => Ok(Some(Text { text, sha256 })),
                _ => Err(Refusal::NotText { path: self.path.clone() }),
            },
            PathState::Symlink { target } => {
                Err(Refusal::Link { path: self.path.clone(), target: target.clone() })
            }
            other => Err(Refusal::occupied(&self.path, other, "a file")),
        }
    }

    /// The change from `present` to the text `after`; empty where they are the same.
    pub fn change(&self, present: Option<Text<'_>>, after: String, context: &Context<'_>) -> Change {
        let mut change = Change::default();
        let before = present.map_or("", |present| present.text);
        if before == after {
            return change;
        }
        let hidden = self.sensitive || context.pending.hides(&self.path);
        change.differences.push(match hidden {
            true => Difference::Hidden { what: "content (sensitive)".to_owned() },
            false => {
                Difference::Text { path: self.path.clone(), before: before.to_owned(), after: after.clone() }
            }
        });
        let access = Access::root(0o644);
        if present.is_none() {
            change.access(None, &access);
        }
        change.steps.push(Step::EditFile {
            path: self.path.clone(),
            found: present.map(|present| present.sha256.to_owned()),
            content: after.into_bytes(),
            access,
            sensitive: hidden,
        });
        change
    }
}

/// The text of a file and its digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text<'a> {
    pub text: &'a str,
    pub sha256: &'a str,
}
