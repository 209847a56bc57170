//! `directory`: a directory; its content is not compared.

use crate::resource::contract::change::{Change, Verdict};
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, PathState, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::{Access, Step};
use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_spec::{FieldSpec, FieldType};
use crate::resource::fields::field_values::FieldValues;
use crate::resource::fields::path;

pub const FIELDS: &[FieldSpec] = &[
    FieldSpec::optional("mode", FieldType::Mode, "Permission bits, \"0755\" by default."),
    FieldSpec::optional("owner", FieldType::String, "Owner, root by default."),
    FieldSpec::optional("group", FieldType::String, "Group, root by default."),
    FieldSpec::optional(
        "recursive",
        FieldType::Boolean,
        "With `ensure: absent`: whether it is removed with its content, false by default.",
    ),
];

/// A directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    path: String,
    /// `None` when it should be absent.
    access: Option<Access>,
    recursive: bool,
}

impl Directory {
    pub fn parse(name: &str, fields: &FieldValues) -> Result<Self, FieldError> {
        let path = path::named(fields, name)?;
        let access = (fields.ensure == Ensure::Present).then(|| fields.access(0o755));
        let recursive = fields.boolean("recursive", false);
        if access.is_none() && recursive && path::is_protected(&path) {
            return Err(
                fields.invalid("recursive", format!("must not be set for {path}, a system directory"))
            );
        }
        Ok(Self { path, access, recursive })
    }

    pub fn probes(&self) -> Vec<Probe> {
        vec![Probe::path(&self.path)]
    }

    pub fn diff(&self, observed: &Observed, context: &Context<'_>) -> Result<Verdict, Refusal> {
        let probe = Probe::path(&self.path);
        let state = observed.path(probe, context.pending)?;
        let mut change = Change::default();
        let Some(access) = &self.access else {
            match state {
                PathState::Absent => {}
                PathState::Directory { .. } => {
                    let what = if self.recursive { "directory with its content" } else { "directory" };
                    change.field("type", Some(what), None);
                    change.steps.push(Step::Remove { path: self.path.clone(), recursive: self.recursive });
                }
                other => return Err(Refusal::occupied(&self.path, other, "a directory")),
            }
            return Ok(change.into_verdict("is absent"));
        };
        match state {
            PathState::Absent => {
                change.field("type", None, Some("directory"));
                change.access(None, access);
                change.steps.push(Step::MakeDirectory { path: self.path.clone(), access: access.clone() });
            }
            PathState::Directory { mode, owner, group } => {
                let before = Access { owner: owner.clone(), group: group.clone(), mode: *mode };
                change.access(Some(&before), access);
                if !change.differences.is_empty() {
                    change.steps.push(Step::SetAccess { path: self.path.clone(), access: access.clone() });
                }
            }
            other => return Err(Refusal::occupied(&self.path, other, "a directory")),
        }
        Ok(change.into_verdict("is a directory with this owner and mode"))
    }
}
