//! `symlink`: a symbolic link. Its target need not exist.

use crate::resource::contract::change::{Change, Verdict};
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, PathState, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::Step;
use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_spec::{FieldSpec, FieldType};
use crate::resource::fields::field_values::FieldValues;
use crate::resource::fields::path;

pub const FIELDS: &[FieldSpec] = &[
    FieldSpec::required(
        "target",
        FieldType::String,
        "The target, absolute or relative to the directory of the link.",
    ),
    FieldSpec::optional(
        "replace",
        FieldType::Boolean,
        "Whether a link with another target is changed, and a file or directory refused, true by default. With `false`, whatever is at the path stays.",
    ),
];

/// A symbolic link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symlink {
    path: String,
    /// `None` when it should be absent.
    target: Option<String>,
    replace: bool,
}

impl Symlink {
    pub fn parse(name: &str, fields: &FieldValues) -> Result<Self, FieldError> {
        let path = path::named(fields, name)?;
        let target = match fields.ensure {
            Ensure::Absent => None,
            Ensure::Present => Some(fields.need("target")?),
        };
        if target.as_deref() == Some("") {
            return Err(fields.invalid("target", "must not be empty"));
        }
        Ok(Self { path, target, replace: fields.boolean("replace", true) })
    }

    pub fn probes(&self) -> Vec<Probe> {
        vec![Probe::path(&self.path)]
    }

    /// A file or directory at its path is never replaced.
    pub fn diff(&self, observed: &Observed, context: &Context<'_>) -> Result<Verdict, Refusal> {
        let probe = Probe::path(&self.path);
        let before = match observed.path(probe, context.pending)? {
            PathState::Absent => None,
            PathState::Symlink { target } if Some(target) == self.target.as_ref() => Some(target.as_str()),
            _ if self.target.is_some() && !self.replace => {
                return Ok(Verdict::NoChange { reason: "exists, and is not replaced".into() });
            }
            PathState::Symlink { target } => Some(target.as_str()),
            other => return Err(Refusal::occupied(&self.path, other, "a symbolic link")),
        };
        let mut change = Change::default();
        if before != self.target.as_deref() {
            change.field("target", before, self.target.as_deref());
            change.steps.push(match &self.target {
                Some(target) => Step::Symlink { path: self.path.clone(), target: target.clone() },
                None => Step::Remove { path: self.path.clone(), recursive: false },
            });
        }
        Ok(change.into_verdict(match &self.target {
            Some(target) => format!("points to {target}"),
            None => "is absent".to_owned(),
        }))
    }
}
