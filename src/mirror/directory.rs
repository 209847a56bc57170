//! The files of a server on disk: bundles, and the indexes that take precedence over theirs.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::bundle::digest::Sha256;
use crate::bundle::manifest::{self, Bundle};

/// The directory of a mirror.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirrorDirectory(PathBuf);

impl MirrorDirectory {
    /// At this path; nothing has to be there.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The bundles, each in a directory that is named by its version of Kubernetes.
    pub fn bundles(&self) -> PathBuf {
        self.0.join("bundles")
    }

    /// The signed indexes, by their path on the server.
    pub fn indexes(&self) -> PathBuf {
        self.0.join("indexes")
    }

    /// What the mirror has, as the last sync left it; the first one creates it.
    pub fn contents(&self) -> PathBuf {
        self.0.join("contents.json")
    }

    /// The bundles that are whole: with the digest of their manifests.
    ///
    /// # Errors
    /// When the directory cannot be listed.
    pub fn whole_bundles(&self) -> io::Result<BTreeMap<String, Sha256>> {
        let mut bundles = BTreeMap::new();
        for name in names(&self.bundles())? {
            if let Some(digest) = whole(&self.bundles().join(&name)) {
                bundles.insert(name, digest);
            }
        }
        Ok(bundles)
    }
}

/// The digest of the manifest of a bundle in which every file has its size; `None` of any other.
fn whole(bundle: &Path) -> Option<Sha256> {
    let listed = Bundle::read(bundle).ok()?.files;
    let is_there = |(path, size): (&String, u64)| {
        fs::symlink_metadata(bundle.join(path)).is_ok_and(|file| file.is_file() && file.len() == size)
    };
    let whole = listed.iter().map(|(path, record)| (path, record.size)).all(is_there);
    if whole { bundle_digest(bundle).ok() } else { None }
}

/// The digest of the manifest of a bundle.
///
/// # Errors
/// When it cannot be read.
pub fn bundle_digest(bundle: &Path) -> io::Result<Sha256> {
    Ok(Sha256::of_file(&bundle.join(manifest::FILE_NAME))?.0)
}

/// The digest of every file below a directory, by its path there; of a directory that is not there, none.
///
/// # Errors
/// When something in it cannot be read.
pub fn file_digests(directory: &Path) -> io::Result<BTreeMap<String, Sha256>> {
    let mut digests = BTreeMap::new();
    let mut next = vec![String::new()];
    while let Some(within) = next.pop() {
        for name in names(&directory.join(&within))? {
            let path = if within.is_empty() { name } else { format!("{within}/{name}") };
            let place = directory.join(&path);
            if place.is_dir() {
                next.push(path);
            } else {
                digests.insert(path, Sha256::of_file(&place)?.0);
            }
        }
    }
    Ok(digests)
}

/// What is in a directory and does not begin with a dot, as what is being written does; in order.
pub(super) fn names(directory: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let names: io::Result<Vec<String>> =
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect();
    let mut names = names?;
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_that_lacks_a_file_or_a_byte_is_not_whole() {
        let root = tempfile::tempdir().unwrap();
        let mirror = MirrorDirectory::at(root.path());
        assert_eq!(mirror.whole_bundles().unwrap(), BTreeMap::new());
        let bundle = mirror.bundles().join("1.35.4");
        fs::create_dir_all(bundle.join("apt")).unwrap();
        fs::create_dir_all(mirror.bundles().join(".1.36.0.received")).unwrap();
        let digest = Sha256::of(b"deb");
        let text = format!(
            "apiVersion: metalform.dev/v1alpha1\nkind: Bundle\ninputs: {digest}\narchitectures: []\nplatforms: []\n\
             versions: {{}}\nprovenance: {{}}\nimages: {{}}\npackages: []\nfiles: {{ apt/a.deb: {{ sha256: {digest}, size: 3 }} }}\n"
        );
        fs::write(bundle.join("bundle.yaml"), &text).unwrap();
        let whole = BTreeMap::from([("1.35.4".to_owned(), Sha256::of(text.as_bytes()))]);
        for (content, expected) in
            [(None, BTreeMap::new()), (Some("de"), BTreeMap::new()), (Some("deb"), whole)]
        {
            if let Some(content) = content {
                fs::write(bundle.join("apt/a.deb"), content).unwrap();
            }
            assert_eq!(mirror.whole_bundles().unwrap(), expected, "{content:?}");
        }
    }

    #[test]
    fn files_are_named_by_their_path_and_what_is_being_written_is_left_out() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(file_digests(&root.path().join("absent")).unwrap(), BTreeMap::new());
        fs::create_dir_all(root.path().join("dists/debian-13")).unwrap();
        fs::write(root.path().join("dists/debian-13/InRelease"), "signed").unwrap();
        fs::write(root.path().join("dists/debian-13/.InRelease.new"), "half").unwrap();
        let expected = BTreeMap::from([("dists/debian-13/InRelease".to_owned(), Sha256::of(b"signed"))]);
        assert_eq!(file_digests(root.path()).unwrap(), expected);
    }
}
