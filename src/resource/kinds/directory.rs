//! `directory`: a directory; what is in it is not looked at.

use crate::resource::contract::change::{Change, Verdict};
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, PathState, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::{Access, Step};
use crate::resource::fields::field::{FieldSort, FieldSpec};
use crate::resource::fields::given::{FieldError, Given};
use crate::resource::fields::path;
use crate::resource::text::contents::{access_differences, occupied};

/// Its fields.
pub const FIELDS: &[FieldSpec] = &[
    FieldSpec {
        name: "mode",
        sort: FieldSort::Mode,
        required: false,
        about: "Permission bits, \"0755\" by default.",
    },
    FieldSpec { name: "owner", sort: FieldSort::Text, required: false, about: "User, root by default." },
    FieldSpec { name: "group", sort: FieldSort::Text, required: false, about: "Group, root by default." },
    FieldSpec {
        name: "recursive",
        sort: FieldSort::Boolean,
        required: false,
        about: "With `ensure: absent`, whether it goes with all that is in it; false by default.",
    },
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
    pub(in crate::resource) fn parse(name: &str, given: &Given) -> Result<Self, FieldError> {
        let path = path::named("directory", name)?;
        let access = (given.ensure == Ensure::Present).then(|| given.access(0o755));
        let recursive = given.boolean("recursive", false);
        if access.is_none() && recursive && path::is_of_the_system(&path) {
            return Err(given.invalid("recursive", format!("{path} is a directory of the system")));
        }
        Ok(Self { path, access, recursive })
    }

    pub(in crate::resource) fn probes(&self) -> Vec<Probe> {
        vec![Probe::Path { path: self.path.clone(), unless_sha256: None }]
    }

    pub(in crate::resource) fn diff(
        &self,
        observed: &Observed,
        context: &Context<'_>,
    ) -> Result<Verdict, Refusal> {
        let probe = Probe::Path { path: self.path.clone(), unless_sha256: None };
        let state = observed.path(probe, context.pending)?;
        let mut change = Change::default();
        let Some(access) = &self.access else {
            match state {
                PathState::Absent => {}
                PathState::Directory { .. } => {
                    let what = if self.recursive { "directory with its content" } else { "directory" };
                    change.field("sort", Some(what), None);
                    change.steps.push(Step::Remove { path: self.path.clone(), recursive: self.recursive });
                }
                other => return Err(occupied(&self.path, other, "a directory")),
            }
            return Ok(change.or("is absent"));
        };
        match state {
            PathState::Absent => {
                change.field("sort", None, Some("directory"));
                access_differences(None, access, &mut change);
                change.steps.push(Step::MakeDirectory { path: self.path.clone(), access: access.clone() });
            }
            PathState::Directory { mode, owner, group } => {
                let before = Access { owner: owner.clone(), group: group.clone(), mode: *mode };
                access_differences(Some(&before), access, &mut change);
                if !change.differences.is_empty() {
                    change.steps.push(Step::SetAccess { path: self.path.clone(), access: access.clone() });
                }
            }
            other => return Err(occupied(&self.path, other, "a directory")),
        }
        Ok(change.or("is a directory with this owner and mode"))
    }
}
