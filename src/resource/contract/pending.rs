//! What earlier resources of the same run will have changed when the turn of a later one comes.
//!
//! A plan is made from one observation, before anything is done. So what was seen of a resource may be out
//! of date by then, and this says in which respects.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

use crate::resource::contract::change::Change;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::PathState;
use crate::resource::contract::step::Step;

/// Where systemd looks for unit files that packages and administrators bring.
const UNIT_DIRECTORIES: [&str; 4] = [
    "/etc/systemd/system/",
    "/usr/lib/systemd/system/",
    "/lib/systemd/system/",
    "/usr/local/lib/systemd/system/",
];

/// What the changes before a resource come to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pending {
    /// The resources with changes, by their id (`kind:name`), and whether they come or go.
    resources: BTreeMap<String, Ensure>,
    /// What will have been written or removed, by path.
    paths: BTreeMap<String, PathState>,
    /// Files whose text must never be shown.
    secrets: BTreeSet<String>,
}

impl Pending {
    /// For a run in which the text of these files must never be shown, whichever resource edits them.
    pub fn hiding<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        Self { secrets: secrets.into_iter().map(str::to_owned).collect(), ..Self::default() }
    }

    /// To be called, in the order of execution, for each resource whose verdict is a change.
    pub fn record(&mut self, id: impl Into<String>, ensure: Ensure, change: &Change) {
        self.resources.insert(id.into(), ensure);
        for step in &change.steps {
            let (path, state) = match step {
                Step::WriteFile { path, content, access, sensitive }
                | Step::EditFile { path, content, access, sensitive, .. } => {
                    if *sensitive {
                        self.secrets.insert(path.clone());
                    }
                    let state = PathState::File {
                        mode: access.mode,
                        owner: access.owner.clone(),
                        group: access.group.clone(),
                        sha256: hex::encode(Sha256::digest(content)),
                        size: content.len() as u64,
                        content: Some(content.clone()),
                    };
                    (path, state)
                }
                Step::WriteAuthorizedKeys { user, content, .. } => {
                    let state = PathState::File {
                        mode: 0o600,
                        owner: user.clone(),
                        group: user.clone(),
                        sha256: hex::encode(Sha256::digest(content)),
                        size: content.len() as u64,
                        content: Some(content.clone()),
                    };
                    self.paths.insert(keys_path(user), state);
                    continue;
                }
                Step::Symlink { path, target } => (path, PathState::Symlink { target: target.clone() }),
                Step::Remove { path, .. } => (path, PathState::Absent),
                _ => continue,
            };
            self.paths.insert(path.clone(), state);
        }
    }

    /// What an earlier resource will have left at the path; `None` where it is still what was observed.
    pub(in crate::resource) fn at(&self, path: &str) -> Option<&PathState> {
        self.paths.get(path).or_else(|| self.removes(path).then_some(&PathState::Absent))
    }

    /// Whether the text of the file must never be shown.
    pub(in crate::resource) fn hides(&self, path: &str) -> bool {
        self.secrets.contains(path)
    }

    /// Whether this very resource will come.
    pub(in crate::resource) fn comes(&self, kind: &str, name: &str) -> bool {
        self.resources.get(&format!("{kind}:{name}")) == Some(&Ensure::Present)
    }

    /// Whether this very resource will go.
    pub(in crate::resource) fn goes(&self, kind: &str, name: &str) -> bool {
        self.resources.get(&format!("{kind}:{name}")) == Some(&Ensure::Absent)
    }

    /// Whether an earlier resource may bring files that are not known: a package, a command or an archive.
    pub(in crate::resource) fn may_bring_files(&self) -> bool {
        ["package", "command", "archive"].iter().any(|kind| self.brings(kind))
    }

    /// The first of these ids that has a change; the answer to `only_if_changed` of any kind.
    pub fn first_of<'a>(&self, ids: &'a [String]) -> Option<&'a str> {
        ids.iter().map(String::as_str).find(|id| self.resources.contains_key(*id))
    }

    /// Whether any resource changes.
    pub(in crate::resource) fn changes_anything(&self) -> bool {
        !self.resources.is_empty()
    }

    /// Whether any resource of the kind will come.
    pub(in crate::resource) fn brings(&self, kind: &str) -> bool {
        self.of(Ensure::Present).any(|(of_kind, _)| of_kind == kind)
    }

    /// Whether an earlier resource takes away what is at the path, by itself or with its directory.
    fn removes(&self, path: &str) -> bool {
        self.of(Ensure::Absent).any(|(kind, removed)| match kind {
            "file" | "template" | "symlink" | "certificate" | "binary" | "kubeconfig" => path == removed,
            "directory" | "archive" => {
                path == removed || path.strip_prefix(removed).is_some_and(|rest| rest.starts_with('/'))
            }
            _ => false,
        })
    }

    /// Whether the unit may come to exist: by its unit file, or by a package, whose content is not known.
    pub(in crate::resource) fn may_bring_unit(&self, unit: &str) -> bool {
        self.brings("package")
            || self.brings_unit_file(unit)
            || self.of(Ensure::Present).any(|(kind, name)| kind == "unit" && is_of_unit(name, unit))
    }

    /// Whether a file of the unit, or a drop-in of it, is written by a resource that does not make systemd
    /// read it again by itself (`unit` does).
    pub(in crate::resource) fn brings_unit_file(&self, unit: &str) -> bool {
        self.resources.keys().filter_map(|id| id.split_once(':')).any(|(kind, path)| {
            matches!(kind, "file" | "template" | "symlink")
                && UNIT_DIRECTORIES.iter().filter_map(|directory| path.strip_prefix(directory)).any(|rest| {
                    let top = rest.split('/').next().unwrap_or(rest);
                    is_of_unit(top.strip_suffix(".d").unwrap_or(top), unit)
                })
        })
    }

    fn of(&self, ensure: Ensure) -> impl Iterator<Item = (&str, &str)> {
        self.resources.iter().filter(move |(_, has)| **has == ensure).filter_map(|(id, _)| id.split_once(':'))
    }
}

/// Under what name the keys of a user are among the paths, as the home may not be known.
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
        pending.record(id, ensure, &Change::default());
        pending
    }

    #[test]
    fn a_directory_goes_with_what_is_in_it_and_not_with_its_namesakes() {
        let pending = pending("directory:/etc/kubernetes", Ensure::Absent);
        assert!(pending.removes("/etc/kubernetes/pki/ca.crt"));
        assert!(!pending.removes("/etc/kubernetes-old"));
    }

    #[test]
    fn units_come_from_their_files_templates_and_drop_ins() {
        for (id, unit, brings) in [
            ("template:/etc/systemd/system/kubelet.service", "kubelet.service", true),
            ("file:/etc/systemd/system/kubelet.service.d/10-metalform.conf", "kubelet.service", true),
            ("symlink:/usr/lib/systemd/system/a@.service", "a@b.service", true),
            ("file:/etc/kubelet.service", "kubelet.service", false),
            ("file:/etc/systemd/system/other.service", "kubelet.service", false),
        ] {
            assert_eq!(pending(id, Ensure::Present).brings_unit_file(unit), brings, "{id}");
        }
        assert!(pending("unit:a@.service", Ensure::Present).may_bring_unit("a@b.service"));
        assert!(pending("package:kubelet", Ensure::Present).may_bring_unit("kubelet.service"));
        assert!(!pending("package:kubelet", Ensure::Absent).may_bring_unit("kubelet.service"));
    }
}
