//! `binary`: a program that the host downloads, identified by its digest.

use crate::resource::contract::change::{Change, Verdict};
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, PathState, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::remote_file::RemoteFile;
use crate::resource::contract::step::{Access, Step};
use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_spec::{FieldSpec, FieldType};
use crate::resource::fields::field_values::FieldValues;
use crate::resource::fields::path;
use crate::resource::fields::remote_file;
use crate::resource::text::contents::removal;

pub const FIELDS: &[FieldSpec] = &[
    remote_file::URL,
    remote_file::SHA256,
    remote_file::CA,
    FieldSpec::optional("mode", FieldType::Mode, "Permission bits, \"0755\" by default."),
    FieldSpec::optional("owner", FieldType::String, "Owner, root by default."),
    FieldSpec::optional("group", FieldType::String, "Group, root by default."),
];

/// A downloaded program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binary {
    path: String,
    /// `None` when it should be absent.
    desired: Option<(RemoteFile, Access)>,
}

impl Binary {
    pub fn parse(name: &str, fields: &FieldValues) -> Result<Self, FieldError> {
        let path = path::named(fields, name)?;
        let desired = match fields.ensure {
            Ensure::Absent => None,
            Ensure::Present => Some((remote_file::parse(fields)?, fields.access(0o755))),
        };
        Ok(Self { path, desired })
    }

    pub fn probes(&self) -> Vec<Probe> {
        vec![Probe::path(&self.path)]
    }

    /// A symbolic link is replaced, not followed.
    pub fn diff(&self, observed: &Observed, context: &Context<'_>) -> Result<Verdict, Refusal> {
        let Some((from, access)) = &self.desired else {
            return Ok(removal(&self.path, observed, context.pending)?.into_verdict("is absent"));
        };
        let mut change = Change::default();
        let (before, digest) = match observed.path(Probe::path(&self.path), context.pending)? {
            PathState::Absent => (None, None),
            PathState::Symlink { target } => {
                change.field("type", Some(&format!("link to {target}")), Some("file"));
                (None, None)
            }
            PathState::File { mode, owner, group, sha256, .. } => {
                let access = Access { owner: owner.clone(), group: group.clone(), mode: *mode };
                (Some(access), Some(sha256.as_str()))
            }
            other => return Err(Refusal::occupied(&self.path, other, "a file")),
        };
        let fetch = digest != Some(from.sha256.as_str());
        if fetch {
            change.field("sha256", digest, Some(&from.sha256));
        }
        change.access(before.as_ref(), access);
        let (path, access) = (self.path.clone(), access.clone());
        if fetch {
            change.steps.push(Step::Download { from: from.clone(), path, access });
        } else if !change.differences.is_empty() {
            change.steps.push(Step::SetAccess { path, access });
        }
        Ok(change.into_verdict("has this digest, owner and mode"))
    }
}
