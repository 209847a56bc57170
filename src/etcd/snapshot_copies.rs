//! Which host has which snapshots, and what follows: which are kept, copied and removed. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::snapshot_name::SnapshotName;
use crate::model::name::HostName;

/// The hosts that shall have a snapshot, the bootstrap node included.
pub const COPIES: usize = 2;

/// A file on one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotCopy {
    /// Bytes.
    pub size: u64,
    /// SHA-256 of the database in it, hexadecimal digits; `None` where the file is damaged.
    pub hash: Option<String>,
}

/// The snapshots of one host.
pub type HostSnapshots = BTreeMap<SnapshotName, SnapshotCopy>;

/// The snapshots of every host that was reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SnapshotCopies(BTreeMap<HostName, HostSnapshots>);

impl SnapshotCopies {
    /// Of these hosts. A copy that is another database than the file of this name on `local` is damaged.
    pub fn new(local: &HostName, mut found: BTreeMap<HostName, HostSnapshots>) -> Self {
        let own = found.get(local).cloned().unwrap_or_default();
        for (name, copy) in found.values_mut().flatten() {
            let expected = own.get(name).and_then(|own| own.hash.as_ref());
            if expected.is_some() && copy.hash.as_ref() != expected {
                copy.hash = None;
            }
        }
        Self(found)
    }

    /// Whether the snapshots of a host are known.
    pub fn reached(&self, host: &HostName) -> bool {
        self.0.contains_key(host)
    }

    /// A host has the same file as another now.
    pub fn copied(&mut self, name: &SnapshotName, from: &HostName, to: &HostName) {
        if let Some(copy) = self.0.get(from).and_then(|snapshots| snapshots.get(name)).cloned() {
            self.0.entry(to.clone()).or_default().insert(name.clone(), copy);
        }
    }

    /// A host has this file no longer.
    pub fn forget(&mut self, host: &HostName, name: &SnapshotName) {
        if let Some(snapshots) = self.0.get_mut(host) {
            snapshots.remove(name);
        }
    }

    /// Every file name, the oldest first.
    pub fn names(&self) -> BTreeSet<&SnapshotName> {
        self.0.values().flat_map(BTreeMap::keys).collect()
    }

    /// The hosts with a file of this name, and the file.
    pub fn of<'a>(
        &'a self,
        name: &'a SnapshotName,
    ) -> impl Iterator<Item = (&'a HostName, &'a SnapshotCopy)> {
        self.0.iter().filter_map(move |(host, snapshots)| Some((host, snapshots.get(name)?)))
    }

    /// The hosts with an undamaged copy.
    pub fn holders<'a>(&'a self, name: &'a SnapshotName) -> impl Iterator<Item = &'a HostName> {
        self.of(name).filter(|(_, copy)| copy.hash.is_some()).map(|(host, _)| host)
    }

    /// The snapshots to keep: of those that are undamaged on the host `local` and not newer than `latest`, the newest
    /// `keep`, and the newest of which two hosts have a copy, so that a failing host costs no second copy.
    ///
    /// What is newer than `latest` was taken by a clock that was ahead: it does not count until its time has come. What
    /// only other hosts report does not count either: one that makes names up would push out every real snapshot.
    fn kept(&self, local: &HostName, latest: &SnapshotName, keep: usize) -> Vec<&SnapshotName> {
        let own = self.0.get(local).into_iter().flatten().rev();
        let sound = own.filter(|(name, copy)| *name <= latest && copy.hash.is_some());
        let sound: Vec<_> = sound.map(|(name, _)| name).collect();
        let mut kept: Vec<_> = sound.iter().copied().take(keep).collect();
        let copied = sound.iter().find(|name| self.holders(name).count() >= COPIES);
        kept.extend(copied.filter(|name| !sound.iter().take(keep).any(|other| other == *name)));
        kept
    }

    /// The next copy to make from the host `local`, newest snapshots first, to the first of `candidates`.
    pub fn next_copy(
        &self,
        local: &HostName,
        (latest, keep): (&SnapshotName, usize),
        candidates: &[HostName],
    ) -> Option<(SnapshotName, HostName)> {
        let one_copy = |name: &&SnapshotName| {
            let holders: Vec<_> = self.holders(name).collect();
            holders.len() < COPIES && holders.contains(&local)
        };
        let name = self.kept(local, latest, keep).into_iter().find(one_copy)?;
        Some((name.clone(), candidates.first()?.clone()))
    }

    /// The files to remove, by host: those older than the newest `keep` of the host `local`, damaged ones included. None
    /// while it has fewer.
    pub fn removable(
        &self,
        local: &HostName,
        (latest, keep): (&SnapshotName, usize),
    ) -> BTreeMap<HostName, Vec<SnapshotName>> {
        let kept = self.kept(local, latest, keep);
        let Some(oldest) = keep.checked_sub(1).and_then(|last| kept.get(last)) else {
            return BTreeMap::new();
        };
        let older = |snapshots: &HostSnapshots| -> Vec<SnapshotName> {
            snapshots.keys().filter(|name| name < oldest && !kept.contains(name)).cloned().collect()
        };
        let hosts = self.0.iter().map(|(host, snapshots)| (host.clone(), older(snapshots)));
        hosts.filter(|(_, names)| !names.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn host(name: &str) -> HostName {
        name.parse().unwrap()
    }

    fn at(second: u32) -> SnapshotName {
        SnapshotName::new(Timestamp::from_second(second.into()).unwrap(), 7)
    }

    /// `a: 1 2! 3x`: host a has 1, a damaged 2, and 3 with another content than other hosts.
    fn copies(text: &str) -> SnapshotCopies {
        let file = |word: &str| {
            let hash = match word.trim_start_matches(char::is_numeric) {
                "" => Some("same".to_owned()),
                "x" => Some("another".to_owned()),
                _ => None,
            };
            (at(word.trim_end_matches(['!', 'x']).parse().unwrap()), SnapshotCopy { size: 20, hash })
        };
        let of_host = |line: &str| {
            let (name, files) = line.split_once(':').unwrap();
            (host(name.trim()), files.split_whitespace().map(file).collect())
        };
        SnapshotCopies::new(&host("a"), text.split(',').map(of_host).collect())
    }

    fn seconds<'a>(names: impl IntoIterator<Item = &'a SnapshotName>) -> String {
        let seconds = names.into_iter().map(|name| name.time().as_second().to_string());
        seconds.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_newest_are_kept_and_only_what_is_older_is_removed() {
        for (found, latest, keep, expected) in [
            ("a: 1 2", 2, 2, ""),
            ("a: 1 2 3, b: 1 2 3", 3, 2, "a: 1, b: 1"),
            // Fewer sound ones than are to be kept: nothing is removed.
            ("a: 1! 2! 3", 3, 2, ""),
            // Damaged ones do not count, and leave with those of their age.
            ("a: 1 2! 3 4!, b: 1! 4!", 4, 2, ""),
            ("a: 1! 2 3! 4, b: 1!", 4, 2, "a: 1, b: 1"),
            // What is sound on another host only does not count.
            ("a: 1 2! 3, b: 1! 2 3", 3, 2, ""),
            ("a: 1 2 3 4!, b: 2! 3 4", 4, 2, "a: 1"),
            // A host that makes names up keeps its own, and pushes out none.
            ("a: 1 2 3, b: 4 5 6", 6, 2, "a: 1"),
            // A new bootstrap node removes nothing before it has enough of its own.
            ("a: 6, b: 1 2 3 4 5 6", 6, 2, ""),
            ("a: 6 7, b: 1 2 3 4 5 6 7", 7, 2, "b: 1 2 3 4 5"),
            // The newest that two hosts have stays, however old.
            ("a: 1 2 3 4 5, b: 1 2", 5, 2, "a: 1 3, b: 1"),
            ("a: 1 2 3 4 5, b: 1 2, c: 4", 5, 2, "a: 1 2 3, b: 1 2"),
            // Another content is no copy.
            ("a: 1 2 3 4, b: 1 2x", 4, 2, "a: 2, b: 2"),
            // Those of a clock that was ahead neither count nor go.
            ("a: 1 2 3 8 9", 3, 2, "a: 1"),
            ("a: 3 8 9", 3, 1, ""),
            ("a: 3 4", 4, 0, ""),
        ] {
            let removed = copies(found).removable(&host("a"), (&at(latest), keep));
            let removed =
                removed.iter().map(|(host, names)| format!("{}: {}", host.as_str(), seconds(names)));
            assert_eq!(removed.collect::<Vec<_>>().join(", "), expected, "{found}");
        }
    }

    #[test]
    fn every_kept_snapshot_is_copied_to_a_second_host_the_newest_first() {
        for (found, candidates, expected) in [
            ("a: 3", "b c", "3 to b"),
            ("a: 3", "", ""),
            ("a: 3, b: 3", "b c", ""),
            ("a: 3, d: 3", "b c", ""),
            ("a: 2 3, b: 3", "b c", "2 to b"),
            ("a: 2 3, b: 2", "b c", "3 to b"),
            ("a: 2 3, b: 2! 3", "b c", "2 to b"),
            ("a: 3, b: 3x", "b", "3 to b"),
            // Beyond those to keep, and what is not on this host.
            ("a: 1 2 3, b: 2 3", "b", ""),
            ("a: 2! 3, b: 2 3", "c", ""),
            ("a: 3 9, b: 3", "b", ""),
        ] {
            let candidates: Vec<HostName> = candidates.split_whitespace().map(host).collect();
            let next = copies(found).next_copy(&host("a"), (&at(3), 2), &candidates);
            let next = next.map(|(name, to)| format!("{} to {}", seconds([&name]), to.as_str()));
            assert_eq!(next.unwrap_or_default(), expected, "{found}");
        }
    }
}
