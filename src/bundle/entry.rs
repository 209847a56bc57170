//! The cache of a bundle's parts (a component, its binaries, or a platform's packages), by the digest of their inputs.
//!
//! An entry is a directory with the layout of a bundle (binaries: by name), and `entry.json`. It is created under another name and renamed,
//! so that an existing one is complete. Files with the same content are one file on the disk, whichever entries have
//! them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::content::{BundledPackage, FileRecord};
use super::digest::Sha256;
use super::file_records::file_records;
use super::origins::Origins;

const FILE_NAME: &str = "entry.json";
/// The directory of an entry's files, by their path in the bundle.
const CONTENT: &str = "content";

/// Prefix of the names of incomplete entries.
pub(super) const DRAFT_PREFIX: &str = ".draft-";

/// A cached part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// URLs, modules or archive.
    pub(super) provenance: String,
    /// Digests of what its binaries were made of.
    #[serde(default)]
    pub(super) origins: Origins,
    /// Path in the bundle → digest and size.
    pub(super) files: BTreeMap<String, FileRecord>,
    /// Full reference → digest of the manifest.
    pub(super) images: BTreeMap<String, Sha256>,
    /// With their index entries.
    pub(super) packages: Vec<EntryPackage>,
}

/// A package and its entry in the package index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryPackage {
    /// As in `bundle.yaml`.
    pub package: BundledPackage,
    /// What the package indexes have of it, in the form of the format.
    pub index_entry: String,
}

/// The cache cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {path}")]
pub struct EntryError {
    path: String,
    source: io::Error,
}

/// An incomplete entry; removed when dropped.
pub struct Draft {
    directory: tempfile::TempDir,
    place: PathBuf,
}

/// The entry with these inputs, if it exists and its files are unaltered.
pub(super) fn find(cache: &Path, inputs: &Sha256) -> Option<Entry> {
    let entry = recorded(cache, inputs)?;
    let intact = file_records(&content(cache, inputs)).is_ok_and(|found| found == entry.files);
    intact.then_some(entry)
}

/// What was recorded of the entry with these inputs. Its files may be altered since.
pub(super) fn recorded(cache: &Path, inputs: &Sha256) -> Option<Entry> {
    let text = fs::read_to_string(cache.join(inputs.as_str()).join(FILE_NAME)).ok()?;
    serde_json::from_str(&text).ok()
}

/// The directory of an entry's files.
pub(super) fn content(cache: &Path, inputs: &Sha256) -> PathBuf {
    cache.join(inputs.as_str()).join(CONTENT)
}

impl Draft {
    /// # Errors
    /// When the cache cannot be written.
    pub(super) fn new(cache: &Path, inputs: &Sha256) -> Result<Self, EntryError> {
        let failed = |source| EntryError { path: cache.display().to_string(), source };
        let directory = tempfile::Builder::new().prefix(DRAFT_PREFIX).tempdir_in(cache).map_err(failed)?;
        fs::create_dir(directory.path().join(CONTENT)).map_err(failed)?;
        Ok(Self { directory, place: cache.join(inputs.as_str()) })
    }

    /// A directory in the bundle, created if it does not exist.
    ///
    /// # Errors
    /// When it cannot be created.
    pub(super) fn content(&self, path: &str) -> Result<PathBuf, EntryError> {
        self.make(self.directory.path().join(CONTENT).join(path))
    }

    /// Makes a directory of [`Self::scratch`] the whole content, in place of an empty one.
    ///
    /// # Errors
    /// From the operating system.
    pub(super) fn adopt(&self, directory: &Path) -> Result<(), EntryError> {
        let renamed = fs::rename(directory, self.directory.path().join(CONTENT));
        renamed.map_err(|source| EntryError { path: directory.display().to_string(), source })
    }

    /// A new directory that is not part of the entry.
    ///
    /// # Errors
    /// When it cannot be created.
    pub(super) fn scratch(&self, name: &str) -> Result<PathBuf, EntryError> {
        self.make(self.directory.path().join("scratch").join(name))
    }

    fn make(&self, directory: PathBuf) -> Result<PathBuf, EntryError> {
        match fs::create_dir_all(&directory) {
            Ok(()) => Ok(directory),
            Err(source) => Err(EntryError { path: directory.display().to_string(), source }),
        }
    }

    /// Records every file and adds the entry to the cache, in place of a damaged one.
    ///
    /// # Errors
    /// When a file cannot be read, or the cache cannot be written.
    pub(super) fn keep(
        self,
        (provenance, origins): (String, Origins),
        images: BTreeMap<String, Sha256>,
        packages: Vec<EntryPackage>,
    ) -> Result<Entry, EntryError> {
        let place = self.place.clone();
        let keep = || {
            let root = self.directory.path();
            let files = file_records(&root.join(CONTENT))?;
            share_files(&self.place, &root.join(CONTENT), &files);
            for path in files.keys() {
                fs::set_permissions(root.join(CONTENT).join(path), fs::Permissions::from_mode(0o644))?;
            }
            let entry = Entry { provenance, origins, files, images, packages };
            fs::write(root.join(FILE_NAME), serde_json::to_vec(&entry)?)?;
            match fs::remove_dir_all(root.join("scratch")) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            match fs::remove_dir_all(&self.place) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            fs::rename(self.directory.keep(), &self.place)?;
            Ok(entry)
        };
        keep().map_err(|source| EntryError { path: place.display().to_string(), source })
    }
}

/// Replaces each file that another entry has by a hard link to it. Without one, the entry has a copy of its own: a
/// damaged file is not shared, and a file system may have no hard links.
fn share_files(place: &Path, content: &Path, files: &BTreeMap<String, FileRecord>) {
    let present = place.parent().map(present_files).unwrap_or_default();
    for (path, record) in files {
        let Some(twin) = present.get(&record.sha256) else { continue };
        let is_intact = Sha256::of_file(twin).is_ok_and(|(sha256, _)| sha256 == record.sha256);
        let file = content.join(path);
        let link = file.with_added_extension("link");
        if is_intact && fs::hard_link(twin, &link).is_ok() && fs::rename(&link, &file).is_err() {
            // Not part of the entry's files.
            let _ = fs::remove_file(&link);
        }
    }
}

/// A path of each content in the cache.
fn present_files(cache: &Path) -> BTreeMap<Sha256, PathBuf> {
    let mut present = BTreeMap::new();
    for directory in fs::read_dir(cache).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let text = fs::read(directory.join(FILE_NAME)).unwrap_or_default();
        let Ok(entry) = serde_json::from_slice::<Entry>(&text) else { continue };
        let files = entry.files.into_iter();
        present.extend(files.map(|(path, record)| (record.sha256, directory.join(CONTENT).join(path))));
    }
    present
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn files_of_the_same_content_are_one_file() {
        let directory = tempfile::tempdir().unwrap();
        let cache = directory.path();
        let keep = |name: &str, files: &[(&str, &str)]| {
            let inputs = Sha256::of(name.as_bytes());
            let draft = Draft::new(cache, &inputs).unwrap();
            for (path, text) in files {
                fs::write(draft.content("pool").unwrap().join(path), text).unwrap();
            }
            let kept = draft.keep((String::new(), Origins::default()), BTreeMap::new(), Vec::new()).unwrap();
            assert_eq!(find(cache, &inputs), Some(kept));
            move |path: &str| content(cache, &inputs).join("pool").join(path)
        };
        let inode = |path: PathBuf| fs::metadata(path).unwrap().ino();
        let old = keep("old", &[("libc", "same"), ("tool_1", "one")]);
        let new = keep("new", &[("libc", "same"), ("libc-again", "same"), ("tool_2", "two")]);
        assert_eq!(inode(old("libc")), inode(new("libc")));
        assert_eq!(inode(old("libc")), inode(new("libc-again")));

        // A damaged file is no source of another entry's.
        fs::write(old("tool_1"), "eno").unwrap();
        let other = keep("other", &[("tool_1", "one")]);
        assert_eq!(fs::read_to_string(other("tool_1")).unwrap(), "one");
    }
}
