//! `file` and `template`: a regular file. They differ only in who made the content.

use crate::resource::contract::change::Verdict;
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, PathState, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::fields::field::{FieldSort, FieldSpec};
use crate::resource::fields::given::{FieldError, Given};
use crate::resource::fields::path;
use crate::resource::text::contents::{Contents, removal, removal_probe};

/// Both kinds, once a template has been rendered into `content`.
pub const FIELDS: &[FieldSpec] = &[
    FieldSpec { name: "content", sort: FieldSort::Text, required: true, about: "Its whole text." },
    FieldSpec {
        name: "mode",
        sort: FieldSort::Mode,
        required: false,
        about: "Permission bits, \"0644\" by default.",
    },
    FieldSpec { name: "owner", sort: FieldSort::Text, required: false, about: "User, root by default." },
    FieldSpec { name: "group", sort: FieldSort::Text, required: false, about: "Group, root by default." },
    FieldSpec {
        name: "replace",
        sort: FieldSort::Boolean,
        required: false,
        about: "Whether a file that exists is changed, true by default; false makes it only when it is missing.",
    },
];

/// A regular file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    path: String,
    /// `None` when it should be absent.
    wanted: Option<Contents>,
    replace: bool,
}

impl File {
    pub(in crate::resource) fn parse(
        kind: &'static str,
        name: &str,
        given: &Given,
    ) -> Result<Self, FieldError> {
        let path = path::named(kind, name)?;
        let wanted = match given.ensure {
            Ensure::Absent => None,
            Ensure::Present => Some(Contents {
                path: path.clone(),
                text: given.need("content")?,
                access: given.access(0o644),
                sensitive: given.sensitive,
            }),
        };
        Ok(Self { path, wanted, replace: given.boolean("replace", true) })
    }

    pub(in crate::resource) fn probes(&self) -> Vec<Probe> {
        vec![self.wanted.as_ref().map_or_else(|| removal_probe(&self.path), Contents::probe)]
    }

    pub(in crate::resource) fn diff(
        &self,
        observed: &Observed,
        context: &Context<'_>,
    ) -> Result<Verdict, Refusal> {
        let Some(wanted) = &self.wanted else {
            return Ok(removal(&self.path, observed, context.pending)?.or("is absent"));
        };
        let state = observed.path(wanted.probe(), context.pending)?;
        if !self.replace && matches!(state, PathState::File { .. } | PathState::Symlink { .. }) {
            return Ok(Verdict::NoChange { reason: "exists, and is not replaced".to_owned() });
        }
        Ok(wanted.compare(observed, context.pending)?.or("has this content, owner and mode"))
    }
}
