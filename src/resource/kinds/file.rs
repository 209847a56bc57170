//! `file` and `template`: a regular file. They differ only in the source of the content.

use crate::resource::contract::change::Verdict;
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, PathState, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_spec::{FieldSpec, FieldType};
use crate::resource::fields::field_values::FieldValues;
use crate::resource::fields::path;
use crate::resource::text::contents::{Contents, removal};

/// Of both kinds: a template is rendered into `content` before it gets here.
pub const FIELDS: &[FieldSpec] = &[
    FieldSpec::required("content", FieldType::String, "The whole content."),
    FieldSpec::optional("mode", FieldType::Mode, "Permission bits, \"0644\" by default."),
    FieldSpec::optional("owner", FieldType::String, "Owner, root by default."),
    FieldSpec::optional("group", FieldType::String, "Group, root by default."),
    FieldSpec::optional(
        "replace",
        FieldType::Boolean,
        "Whether an existing file is changed, true by default; with false it is only created.",
    ),
];

/// A regular file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    path: String,
    /// `None` when it should be absent.
    desired: Option<Contents>,
    replace: bool,
}

impl File {
    pub fn parse(name: &str, fields: &FieldValues) -> Result<Self, FieldError> {
        let path = path::named(fields, name)?;
        let desired = match fields.ensure {
            Ensure::Absent => None,
            Ensure::Present => Some(Contents {
                path: path.clone(),
                text: fields.need("content")?,
                access: fields.access(0o644),
                sensitive: fields.sensitive,
            }),
        };
        Ok(Self { path, desired, replace: fields.boolean("replace", true) })
    }

    pub fn probes(&self) -> Vec<Probe> {
        vec![self.desired.as_ref().map_or_else(|| Probe::path(&self.path), Contents::probe)]
    }

    pub fn diff(&self, observed: &Observed, context: &Context<'_>) -> Result<Verdict, Refusal> {
        let Some(desired) = &self.desired else {
            return Ok(removal(&self.path, observed, context.pending)?.into_verdict("is absent"));
        };
        let state = observed.path(desired.probe(), context.pending)?;
        if !self.replace && matches!(state, PathState::File { .. } | PathState::Symlink { .. }) {
            return Ok(Verdict::NoChange { reason: "exists, and `replace` is false".to_owned() });
        }
        Ok(desired.compare(observed, context.pending)?.into_verdict("has this content, owner and mode"))
    }
}
