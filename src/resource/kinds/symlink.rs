//! `symlink`: a symbolic link. Whether its target exists is not looked at.

use crate::resource::contract::change::{Change, Verdict};
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, PathState, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::Step;
use crate::resource::fields::field::{FieldSort, FieldSpec};
use crate::resource::fields::given::{FieldError, Given};
use crate::resource::fields::path;
use crate::resource::text::contents::occupied;

/// Its fields.
pub const FIELDS: &[FieldSpec] = &[FieldSpec {
    name: "target",
    sort: FieldSort::Text,
    required: true,
    about: "What it points to, absolute or from its own directory.",
}];

/// A symbolic link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symlink {
    path: String,
    /// `None` when it should be absent.
    target: Option<String>,
}

impl Symlink {
    pub(in crate::resource) fn parse(name: &str, given: &Given) -> Result<Self, FieldError> {
        let path = path::named("symlink", name)?;
        let target = match given.ensure {
            Ensure::Absent => None,
            Ensure::Present => Some(given.need("target")?),
        };
        if target.as_deref() == Some("") {
            return Err(given.invalid("target", "it must not be empty"));
        }
        Ok(Self { path, target })
    }

    pub(in crate::resource) fn probes(&self) -> Vec<Probe> {
        vec![Probe::Path { path: self.path.clone(), unless_sha256: None }]
    }

    /// A file or directory in its place is never replaced by a link.
    pub(in crate::resource) fn diff(
        &self,
        observed: &Observed,
        context: &Context<'_>,
    ) -> Result<Verdict, Refusal> {
        let probe = Probe::Path { path: self.path.clone(), unless_sha256: None };
        let before = match observed.path(probe, context.pending)? {
            PathState::Absent => None,
            PathState::Symlink { target } => Some(target.as_str()),
            other => return Err(occupied(&self.path, other, "a symbolic link")),
        };
        let mut change = Change::default();
        if before != self.target.as_deref() {
            change.field("target", before, self.target.as_deref());
            change.steps.push(match &self.target {
                Some(target) => Step::Symlink { path: self.path.clone(), target: target.clone() },
                None => Step::Remove { path: self.path.clone(), recursive: false },
            });
        }
        Ok(change.or(match &self.target {
            Some(target) => format!("points to {target}"),
            None => "is absent".to_owned(),
        }))
    }
}
