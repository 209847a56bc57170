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

pub const FIELDS: &[FieldSpec] = &[FieldSpec::required(
    "target",
    FieldType::String,
    "The target, absolute or relative to the directory of the link.",
)];

/// A symbolic link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symlink {
    path: String,
    /// `None` when it should be absent.
    target: Option<String>,
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
        Ok(Self { path, target })
    }

    pub fn probes(&self) -> Vec<Probe> {
        vec![Probe::path(&self.path)]
    }

    /// A file or directory at its path is never replaced.
    pub fn diff(&self, observed: &Observed, context: &Context<'_>) -> Result<Verdict, Refusal> {
        let probe = Probe::path(&self.path);
        let before = match observed.path(probe, context.pending)? {
            PathState::Absent => None,
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
