//! The source of state files and templates: the binary, or a directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rust_embed::RustEmbed;

use super::error::StateError;
use super::location::Position;
use crate::model::document;

const STATES: &str = "states";
const TEMPLATES: &str = "templates";

/// The files of `states/` and `templates/`, in the order of their paths; names that begin with a dot are left out. Read
/// once, so that a run uses one tree from start to end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    pub(super) states: BTreeMap<String, String>,
    pub(super) templates: BTreeMap<String, String>,
    /// Of files that are not text.
    pub(super) faults: Vec<StateError>,
}

/// Why a tree could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// A file or a directory could not be read.
    #[error("cannot read {path}")]
    Unreadable {
        path: PathBuf,
        /// Of the operating system.
        source: std::io::Error,
    },
}

// The macro uses include_bytes!, so a change of a file rebuilds the crate. A new file is found in the next rebuild, which
// the first reference to it causes: in states/top.yaml, or in another state.
#[derive(RustEmbed)]
#[folder = "states/"]
#[allow_missing = true]
struct EmbeddedStates;

#[derive(RustEmbed)]
#[folder = "templates/"]
#[allow_missing = true]
struct EmbeddedTemplates;

impl Tree {
    /// The tree in this binary.
    pub fn embedded() -> Self {
        let mut tree = Self::default();
        tree.embed::<EmbeddedStates>(STATES);
        tree.embed::<EmbeddedTemplates>(TEMPLATES);
        tree
    }

    /// The tree in a directory with `states/` and `templates/`. Either may be missing.
    ///
    /// # Errors
    /// The first file that cannot be read. One that is not text is a fault of the tree.
    pub fn directory(root: &Path) -> Result<Self, TreeError> {
        // A directory that does not exist is not an empty tree.
        read_dir(root)?;
        let mut tree = Self::default();
        for folder in [STATES, TEMPLATES] {
            let path = root.join(folder);
            if path.is_dir() {
                tree.read_folder(&path, folder)?;
            }
        }
        Ok(tree)
    }

    /// Adds a file by its path: `states/etcd.yaml`. One that is not text is a fault of the tree.
    pub fn insert(&mut self, path: &str, bytes: Vec<u8>) {
        let Some((folder, below)) = path.split_once('/') else { return };
        match document::text(bytes) {
            Ok(text) => {
                let files = if folder == STATES { &mut self.states } else { &mut self.templates };
                files.insert(below.to_owned(), text);
            }
            Err(error) => {
                let (line, column) = error.position();
                self.faults.push(StateError::new(path, Position { line, column }, error));
            }
        }
    }

    fn embed<Folder: RustEmbed>(&mut self, folder: &str) {
        let visible = Folder::iter().filter(|path| !path.split('/').any(|part| part.starts_with('.')));
        for path in visible {
            let file = Folder::get(&path);
            file.into_iter()
                .for_each(|file| self.insert(&format!("{folder}/{path}"), file.data.into_owned()));
        }
    }

    fn read_folder(&mut self, folder: &Path, shown: &str) -> Result<(), TreeError> {
        let mut entries: Vec<PathBuf> = Vec::new();
        for entry in read_dir(folder)? {
            let unreadable = |source| TreeError::Unreadable { path: folder.to_owned(), source };
            entries.push(entry.map_err(unreadable)?.path());
        }
        entries.sort();
        for path in entries {
            let Some(name) = path.file_name() else { continue };
            let name = name.to_string_lossy();
            if name.starts_with('.') {
                continue;
            }
            let below = format!("{shown}/{name}");
            if path.is_dir() {
                self.read_folder(&path, &below)?;
                continue;
            }
            let bytes = std::fs::read(&path)
                .map_err(|source| TreeError::Unreadable { path: path.clone(), source })?;
            self.insert(&below, bytes);
        }
        Ok(())
    }

    /// Every file of `states/`: path below it, and content.
    pub fn states(&self) -> impl Iterator<Item = (&str, &str)> {
        self.states.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Every file of `templates/`: path below it, and content.
    pub fn templates(&self) -> impl Iterator<Item = (&str, &str)> {
        self.templates.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }
}

fn read_dir(path: &Path) -> Result<std::fs::ReadDir, TreeError> {
    std::fs::read_dir(path).map_err(|source| TreeError::Unreadable { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_read_in_order_and_without_hidden_files() {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("states/top.yaml", "top"),
            ("states/etcd.yaml", "etcd"),
            ("states/.etcd.yaml.swp", "no"),
            ("templates/b/c.j2", "c"),
            ("templates/a.j2", "a"),
        ] {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let tree = Tree::directory(root.path()).unwrap();
        assert_eq!(tree.states().collect::<Vec<_>>(), [("etcd.yaml", "etcd"), ("top.yaml", "top")]);
        assert_eq!(tree.templates().collect::<Vec<_>>(), [("a.j2", "a"), ("b/c.j2", "c")]);
    }

    #[test]
    fn a_missing_directory_is_an_error_and_not_an_empty_tree() {
        let error = Tree::directory(Path::new("/nonexistent")).unwrap_err();
        assert_eq!(error.to_string(), "cannot read /nonexistent");
    }

    #[test]
    fn the_embedded_tree_is_text() {
        assert_eq!(Tree::embedded().faults, []);
    }
}
