//! `archive`: a directory with the content of a tar archive.
//!
//! The file [`MARKER`] in it records which archive it was unpacked from, and how. Nothing else in the directory is
//! compared: manual changes stay until the archive or its options change.

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

pub const FIELDS: &[FieldSpec] = &[
    remote_file::URL,
    remote_file::SHA256,
    remote_file::CA,
    FieldSpec::optional(
        "strip",
        FieldType::Integer,
        "How many leading directories are removed from the names in the archive, 0 by default.",
    ),
    FieldSpec::optional(
        "mode",
        FieldType::Mode,
        "Permission bits of the directory itself, \"0755\" by default.",
    ),
    FieldSpec::optional(
        "owner",
        FieldType::String,
        "Owner of the directory and all its content, root by default.",
    ),
    FieldSpec::optional(
        "group",
        FieldType::String,
        "Group of the directory and all its content, root by default.",
    ),
];

/// Name of the file that records what a directory was unpacked from.
pub const MARKER: &str = ".metalform-archive";

/// An unpacked archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    path: String,
    /// `None` when it should be absent.
    desired: Option<Desired>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Desired {
    from: RemoteFile,
    strip: u32,
    access: Access,
}

impl Desired {
    /// The content of the marker: all that unpacking depends on.
    fn marker(&self) -> String {
        let Access { owner, group, .. } = &self.access;
        format!("sha256 {}\nstrip {}\nowner {owner}:{group}\n", self.from.sha256, self.strip)
    }
}

impl Archive {
    pub fn parse(name: &str, fields: &FieldValues) -> Result<Self, FieldError> {
        let path = path::named(fields, name)?;
        if path::is_protected(&path) {
            let reason = "must not be a system directory";
            return Err(fields.invalid_name(&path, reason));
        }
        let desired = match fields.ensure {
            Ensure::Absent => None,
            Ensure::Present => Some(Desired {
                from: remote_file::parse(fields)?,
                strip: fields.integer("strip", 0..=100, 0)?,
                access: fields.access(0o755),
            }),
        };
        Ok(Self { path, desired })
    }

    pub fn probes(&self) -> Vec<Probe> {
        vec![Probe::path(&self.path), self.marker_probe(), self.empty_probe()]
    }

    fn marker_probe(&self) -> Probe {
        Probe::Content { path: format!("{}/{MARKER}", self.path) }
    }

    fn empty_probe(&self) -> Probe {
        Probe::Empty { path: self.path.clone() }
    }

    pub fn diff(&self, observed: &Observed, context: &Context<'_>) -> Result<Verdict, Refusal> {
        let state = observed.path(Probe::path(&self.path), context.pending)?;
        let marker = observed.content(self.marker_probe())?;
        let before = match state {
            PathState::Absent => None,
            PathState::Directory { mode, owner, group } => {
                if marker.is_none() && !observed.holds(self.empty_probe())? {
                    return Err(Refusal::NotUnpacked { path: self.path.clone() });
                }
                Some(Access { owner: owner.clone(), group: group.clone(), mode: *mode })
            }
            other => return Err(Refusal::occupied(&self.path, other, "a directory")),
        };
        let mut change = Change::default();
        let Some(desired) = &self.desired else {
            if before.is_some() {
                change.field("type", Some("directory with its content"), None);
                change.steps.push(Step::Remove { path: self.path.clone(), recursive: true });
            }
            return Ok(change.into_verdict("is absent"));
        };
        let found = marker.filter(|_| before.is_some()).map(String::from_utf8_lossy);
        let unpacked = found.as_deref() == Some(&desired.marker());
        if !unpacked {
            let found = found.as_deref().map(|marker| marker.trim_end().replace('\n', ", "));
            let after = desired.marker().trim_end().replace('\n', ", ");
            change.field("unpacked", found.as_deref(), Some(&after));
        }
        change.access(before.as_ref(), &desired.access);
        if !unpacked {
            change.steps.push(Step::Unpack {
                from: desired.from.clone(),
                path: self.path.clone(),
                strip: desired.strip,
                marker: desired.marker(),
                access: desired.access.clone(),
            });
        } else if !change.differences.is_empty() {
            change.steps.push(Step::SetAccess { path: self.path.clone(), access: desired.access.clone() });
        }
        Ok(change.into_verdict("was unpacked from this archive"))
    }
}
