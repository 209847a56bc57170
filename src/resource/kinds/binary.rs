//! `binary`: a program that the host downloads, known by its digest.

use crate::resource::contract::change::{Change, Verdict};
use crate::resource::contract::context::Context;
use crate::resource::contract::download::{self, Download};
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, PathState, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::{Access, Step};
use crate::resource::fields::field::{FieldSort, FieldSpec};
use crate::resource::fields::given::{FieldError, Given};
use crate::resource::fields::path;
use crate::resource::text::contents::{access_differences, occupied, removal, removal_probe};

/// Its fields.
pub const FIELDS: &[FieldSpec] = &[
    download::URL,
    download::SHA256,
    download::CA,
    FieldSpec {
        name: "mode",
        sort: FieldSort::Mode,
        required: false,
        about: "Permission bits, \"0755\" by default.",
    },
    FieldSpec { name: "owner", sort: FieldSort::Text, required: false, about: "User, root by default." },
    FieldSpec { name: "group", sort: FieldSort::Text, required: false, about: "Group, root by default." },
];

/// A downloaded program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binary {
    path: String,
    /// `None` when it should be absent.
    wanted: Option<(Download, Access)>,
}

impl Binary {
    pub(in crate::resource) fn parse(name: &str, given: &Given) -> Result<Self, FieldError> {
        let path = path::named("binary", name)?;
        let wanted = match given.ensure {
            Ensure::Absent => None,
            Ensure::Present => Some((Download::parse(given)?, given.access(0o755))),
        };
        Ok(Self { path, wanted })
    }

    pub(in crate::resource) fn probes(&self) -> Vec<Probe> {
        vec![removal_probe(&self.path)]
    }

    /// A symbolic link is replaced, not followed.
    pub(in crate::resource) fn diff(
        &self,
        observed: &Observed,
        context: &Context<'_>,
    ) -> Result<Verdict, Refusal> {
        let Some((from, access)) = &self.wanted else {
            return Ok(removal(&self.path, observed, context.pending)?.or("is absent"));
        };
        let mut change = Change::default();
        let (before, digest) = match observed.path(removal_probe(&self.path), context.pending)? {
            PathState::Absent => (None, None),
            PathState::Symlink { target } => {
                change.field("sort", Some(&format!("link to {target}")), Some("file"));
                (None, None)
            }
            PathState::File { mode, owner, group, sha256, .. } => {
                let access = Access { owner: owner.clone(), group: group.clone(), mode: *mode };
                (Some(access), Some(sha256.as_str()))
            }
            other => return Err(occupied(&self.path, other, "a file")),
        };
        let fetch = digest != Some(from.sha256.as_str());
        if fetch {
            change.field("sha256", digest, Some(&from.sha256));
        }
        access_differences(before.as_ref(), access, &mut change);
        let (path, access) = (self.path.clone(), access.clone());
        if fetch {
            change.steps.push(Step::Download { from: from.clone(), path, access });
        } else if !change.differences.is_empty() {
            change.steps.push(Step::SetAccess { path, access });
        }
        Ok(change.or("has this digest, owner and mode"))
    }
}
