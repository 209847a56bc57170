//! `archive`: a directory that is what a tar archive unpacks to.
//!
//! A file in it, [`MARKER`], says which archive it was unpacked from and how. Nothing else in the directory
//! is looked at: what is changed in it by hand stays until another archive is asked for.

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
use crate::resource::text::contents::{access_differences, occupied, removal_probe};

/// Its fields.
pub const FIELDS: &[FieldSpec] = &[
    download::URL,
    download::SHA256,
    download::CA,
    FieldSpec {
        name: "strip",
        sort: FieldSort::Integer,
        required: false,
        about: "How many leading directories are taken off the names in the archive, 0 by default.",
    },
    FieldSpec {
        name: "mode",
        sort: FieldSort::Mode,
        required: false,
        about: "Permission bits of the directory itself, \"0755\" by default.",
    },
    FieldSpec {
        name: "owner",
        sort: FieldSort::Text,
        required: false,
        about: "User of everything in it, root by default.",
    },
    FieldSpec {
        name: "group",
        sort: FieldSort::Text,
        required: false,
        about: "Group of everything in it, root by default.",
    },
];

/// Name of the file that says what a directory was unpacked from.
pub const MARKER: &str = ".metalform-archive";

/// An unpacked archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    path: String,
    /// `None` when it should be absent.
    wanted: Option<Wanted>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Wanted {
    from: Download,
    strip: u32,
    access: Access,
}

impl Wanted {
    /// What the marker must say: all that unpacking depends on.
    fn marker(&self) -> String {
        let Access { owner, group, .. } = &self.access;
        format!("sha256 {}\nstrip {}\nowner {owner}:{group}\n", self.from.sha256, self.strip)
    }
}

impl Archive {
    pub(in crate::resource) fn parse(name: &str, given: &Given) -> Result<Self, FieldError> {
        let path = path::named("archive", name)?;
        if path::is_of_the_system(&path) {
            let reason = "it is a directory of the system";
            return Err(FieldError::Name { kind: "archive", name: path, reason });
        }
        let wanted = match given.ensure {
            Ensure::Absent => None,
            Ensure::Present => Some(Wanted {
                from: Download::parse(given)?,
                strip: given.number("strip", 0..=100, 0)?,
                access: given.access(0o755),
            }),
        };
        Ok(Self { path, wanted })
    }

    pub(in crate::resource) fn probes(&self) -> Vec<Probe> {
        vec![removal_probe(&self.path), self.marker_probe(), self.empty_probe()]
    }

    fn marker_probe(&self) -> Probe {
        Probe::Content { path: format!("{}/{MARKER}", self.path) }
    }

    fn empty_probe(&self) -> Probe {
        Probe::Empty { path: self.path.clone() }
    }

    pub(in crate::resource) fn diff(
        &self,
        observed: &Observed,
        context: &Context<'_>,
    ) -> Result<Verdict, Refusal> {
        let state = observed.path(removal_probe(&self.path), context.pending)?;
        let marker = observed.content(self.marker_probe())?;
        let before = match state {
            PathState::Absent => None,
            PathState::Directory { mode, owner, group } => {
                if marker.is_none() && !observed.holds(self.empty_probe())? {
                    return Err(Refusal::NotUnpacked { path: self.path.clone() });
                }
                Some(Access { owner: owner.clone(), group: group.clone(), mode: *mode })
            }
            other => return Err(occupied(&self.path, other, "a directory")),
        };
        let mut change = Change::default();
        let Some(wanted) = &self.wanted else {
            if before.is_some() {
                change.field("sort", Some("directory with its content"), None);
                change.steps.push(Step::Remove { path: self.path.clone(), recursive: true });
            }
            return Ok(change.or("is absent"));
        };
        let found = marker.filter(|_| before.is_some()).map(String::from_utf8_lossy);
        let unpacked = found.as_deref() == Some(&wanted.marker());
        if !unpacked {
            let found = found.as_deref().map(|marker| marker.trim_end().replace('\n', ", "));
            let after = wanted.marker().trim_end().replace('\n', ", ");
            change.field("unpacked", found.as_deref(), Some(&after));
        }
        access_differences(before.as_ref(), &wanted.access, &mut change);
        if !unpacked {
            change.steps.push(Step::Unpack {
                from: wanted.from.clone(),
                path: self.path.clone(),
                strip: wanted.strip,
                marker: wanted.marker(),
                access: wanted.access.clone(),
            });
        } else if !change.differences.is_empty() {
            change.steps.push(Step::SetAccess { path: self.path.clone(), access: wanted.access.clone() });
        }
        Ok(change.or("was unpacked from this archive"))
    }
}
