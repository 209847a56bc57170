//! What earlier resources of the same run will have changed when a later one is reached.
//!
//! A plan is made from one observation, before anything is done, so an observation may be out of date when its
//! resource is reached. This is how.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use sha2::{Digest, Sha256};

use crate::resource::contract::change::Change;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::footprint::Footprint;
use crate::resource::contract::kind::Kind;
use crate::resource::contract::probe::PathState;
use crate::resource::contract::resource_id::ResourceId;
use crate::resource::contract::step::{Access, Step};

/// Where systemd looks for unit files of packages and administrators.
const UNIT_DIRECTORIES: [&str; 4] = [
    "/etc/systemd/system/",
    "/usr/lib/systemd/system/",
    "/lib/systemd/system/",
    "/usr/local/lib/systemd/system/",
];

/// The changes before a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pending {
    /// The resources with changes, and whether they will be present or absent.
    resources: BTreeMap<ResourceId, Ensure>,
    /// What will have been written or removed, by path.
    paths: BTreeMap<String, PathState>,
    /// Files whose text must never be shown.
    secrets: BTreeSet<String>,
    /// Resources that an earlier run changed, and that the current resource has not reacted to.
    owed: BTreeSet<ResourceId>,
}

/// Why a resource reacts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReactionCause<'a> {
    id: &'a ResourceId,
    earlier: bool,
}

impl ReactionCause<'_> {
    /// Whether the change was one of an earlier run.
    pub fn is_earlier(&self) -> bool {
        self.earlier
    }
}

impl fmt::Display for ReactionCause<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.id, if self.earlier { "changed in an earlier run" } else { "changes" })
    }
}

impl Pending {
    /// For a run in which the text of these files must never be shown, whichever resource edits them.
    pub fn hiding<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        Self { secrets: secrets.into_iter().map(str::to_owned).collect(), ..Self::default() }
    }

    /// Called, in the order of execution, for each resource whose verdict is a change.
    pub fn record(&mut self, id: ResourceId, ensure: Ensure, change: &Change) {
        self.resources.insert(id, ensure);
        for step in &change.steps {
            self.record_step(step);
        }
    }

    fn record_step(&mut self, step: &Step) {
        match step {
            Step::WriteFile { path, content, access, sensitive }
            | Step::EditFile { path, content, access, sensitive, .. } => {
                if *sensitive {
                    self.secrets.insert(path.clone());
                }
                self.paths.insert(path.clone(), file(access.clone(), content));
            }
            Step::WriteAuthorizedKeys { user, content, .. } => {
                let access = Access { owner: user.clone(), group: user.clone(), mode: 0o600 };
                self.paths.insert(keys_path(user), file(access, content));
            }
            Step::Symlink { path, target } => {
                self.paths.insert(path.clone(), PathState::Symlink { target: target.clone() });
            }
            Step::Remove { path, .. } => {
                self.paths.insert(path.clone(), PathState::Absent);
            }
            // They change no path, or one whose content no later resource compares with.
            Step::MakeDirectory { .. }
            | Step::SetAccess { .. }
            | Step::Download { .. }
            | Step::Unpack { .. }
            | Step::Await { .. }
            | Step::Reboot { .. }
            | Step::RefreshPackageIndex
            | Step::InstallPackages(_)
            | Step::RemovePackages(_)
            | Step::HoldPackage { .. }
            | Step::VerifyUnit { .. }
            | Step::ReloadUnitFiles
            | Step::ReloadUnit(_)
            | Step::Unit { .. }
            | Step::SetSysctl { .. }
            | Step::LoadModule(_)
            | Step::SwapOff
            | Step::PullImage(_)
            | Step::IssueCertificate(_)
            | Step::ReplaceRoute { .. }
            | Step::Account { .. }
            | Step::SetPassword { .. }
            | Step::Mount { .. }
            | Step::Run { .. } => {}
        }
    }

    /// What an earlier resource will have left at the path; `None` where it is still as observed.
    pub(in crate::resource) fn at(&self, path: &str) -> Option<&PathState> {
        self.paths.get(path).or_else(|| self.removes(path).then_some(&PathState::Absent))
    }

    /// Whether the text of the file must never be shown.
    pub(in crate::resource) fn hides(&self, path: &str) -> bool {
        self.secrets.contains(path)
    }

    /// Whether an earlier change makes this resource present.
    pub(in crate::resource) fn adds(&self, kind: Kind, name: &str) -> bool {
        self.becomes(kind, name) == Some(Ensure::Present)
    }

    /// Whether an earlier change makes this resource absent.
    pub(in crate::resource) fn drops(&self, kind: Kind, name: &str) -> bool {
        self.becomes(kind, name) == Some(Ensure::Absent)
    }

    fn becomes(&self, kind: Kind, name: &str) -> Option<Ensure> {
        self.resources.get(&ResourceId { kind, name: name.to_owned() }).copied()
    }

    /// Whether an earlier resource may add files that are not known.
    pub(in crate::resource) fn may_add_files(&self) -> bool {
        self.with(Ensure::Present).any(|id| match id.kind.footprint() {
            Footprint::Unknown | Footprint::Package | Footprint::Archive => true,
            Footprint::None
            | Footprint::File
            | Footprint::Link
            | Footprint::Artefact
            | Footprint::Directory
            | Footprint::UnitFile => false,
        })
    }

    /// Called before a resource is compared: the resources that an earlier run changed, and that this one has not
    /// reacted to.
    pub fn owe(&mut self, causes: BTreeSet<ResourceId>) {
        self.owed = causes;
    }

    /// The first of these resources that has a change, or had one that is owed a reaction: what `only_if_changed` of
    /// any kind depends on.
    pub fn first_of<'a>(&self, ids: &'a [ResourceId]) -> Option<ReactionCause<'a>> {
        let changes = ids.iter().find(|id| self.resources.contains_key(id));
        let changed = || ids.iter().find(|id| self.owed.contains(id));
        changes
            .map(|id| ReactionCause { id, earlier: false })
            .or_else(|| changed().map(|id| ReactionCause { id, earlier: true }))
    }

    /// Whether any resource changes.
    pub(in crate::resource) fn changes_anything(&self) -> bool {
        !self.resources.is_empty()
    }

    /// Whether an earlier change makes any resource of the kind present.
    pub(in crate::resource) fn adds_any(&self, kind: Kind) -> bool {
        self.with(Ensure::Present).any(|id| id.kind == kind)
    }

    /// Whether an earlier resource removes what is at the path, by itself or with its directory.
    fn removes(&self, path: &str) -> bool {
        self.with(Ensure::Absent).any(|id| match id.kind.footprint() {
            Footprint::File | Footprint::Link | Footprint::Artefact => path == id.name,
            Footprint::Directory | Footprint::Archive => {
                path == id.name || path.strip_prefix(&id.name).is_some_and(|rest| rest.starts_with('/'))
            }
            Footprint::None | Footprint::Unknown | Footprint::Package | Footprint::UnitFile => false,
        })
    }

    /// Whether an earlier resource may add the unit: by its unit file, or by a package, whose content is not known.
    pub(in crate::resource) fn may_add_unit(&self, unit: &str) -> bool {
        self.writes_unit_file(unit)
            || self.with(Ensure::Present).any(|id| match id.kind.footprint() {
                Footprint::Package => true,
                Footprint::UnitFile => is_of_unit(&id.name, unit),
                Footprint::None
                | Footprint::Unknown
                | Footprint::File
                | Footprint::Link
                | Footprint::Artefact
                | Footprint::Directory
                | Footprint::Archive => false,
            })
    }

    /// Whether a file or a drop-in of the unit is written by a resource that does not make systemd read it again,
    /// as `unit` does.
    pub(in crate::resource) fn writes_unit_file(&self, unit: &str) -> bool {
        self.resources.keys().any(|id| match id.kind.footprint() {
            Footprint::File | Footprint::Link => {
                UNIT_DIRECTORIES.iter().filter_map(|directory| id.name.strip_prefix(directory)).any(|rest| {
                    let top = rest.split('/').next().unwrap_or(rest);
                    is_of_unit(top.strip_suffix(".d").unwrap_or(top), unit)
                })
            }
            Footprint::None
            | Footprint::Unknown
            | Footprint::Package
            | Footprint::Artefact
            | Footprint::Directory
            | Footprint::Archive
            | Footprint::UnitFile => false,
        })
    }

    fn with(&self, ensure: Ensure) -> impl Iterator<Item = &ResourceId> {
        self.resources.iter().filter(move |(_, has)| **has == ensure).map(|(id, _)| id)
    }
}

fn file(access: Access, content: &[u8]) -> PathState {
    PathState::File {
        mode: access.mode,
        owner: access.owner,
        group: access.group,
        sha256: hex::encode(Sha256::digest(content)),
        size: content.len() as u64,
        content: Some(content.to_vec()),
    }
}

/// The path that the keys of a user are recorded under: the home may not be known.
pub(in crate::resource) fn keys_path(user: &str) -> String {
    format!("~{user}/.ssh/authorized_keys")
}

/// Whether a file name defines the unit: by its name, or as the template of an instance (`a@b.service` is
/// made from `a@.service`; systemd.unit(5)).
fn is_of_unit(file: &str, unit: &str) -> bool {
    file == unit
        || unit.split_once('@').is_some_and(|(prefix, rest)| {
            rest.rsplit_once('.').is_some_and(|(_, suffix)| file == format!("{prefix}@.{suffix}"))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(id: &str, ensure: Ensure) -> Pending {
        let mut pending = Pending::default();
        pending.record(id.parse().unwrap(), ensure, &Change::default());
        pending
    }

    #[test]
    fn a_directory_is_removed_with_its_content_and_without_its_namesakes() {
        let pending = pending("directory:/etc/kubernetes", Ensure::Absent);
        assert!(pending.removes("/etc/kubernetes/pki/ca.crt"));
        assert!(!pending.removes("/etc/kubernetes-old"));
    }

    #[test]
    fn units_are_added_by_their_files_templates_and_drop_ins() {
        for (id, unit, writes) in [
            ("template:/etc/systemd/system/kubelet.service", "kubelet.service", true),
            ("file:/etc/systemd/system/kubelet.service.d/10-metalform.conf", "kubelet.service", true),
            ("symlink:/usr/lib/systemd/system/a@.service", "a@b.service", true),
            ("file:/etc/kubelet.service", "kubelet.service", false),
            ("file:/etc/systemd/system/other.service", "kubelet.service", false),
        ] {
            assert_eq!(pending(id, Ensure::Present).writes_unit_file(unit), writes, "{id}");
        }
        assert!(pending("unit:a@.service", Ensure::Present).may_add_unit("a@b.service"));
        assert!(pending("package:kubelet", Ensure::Present).may_add_unit("kubelet.service"));
        assert!(!pending("package:kubelet", Ensure::Absent).may_add_unit("kubelet.service"));
    }
}
