//! Where state files and templates come from: compiled in, or a directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rust_embed::RustEmbed;

/// The texts of `states/` and `templates/`. Read once, so that a run sees one tree from its beginning to its
/// end. Both are listed in the order of their paths; names that begin with a dot are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    pub(super) states: BTreeMap<String, String>,
    pub(super) templates: BTreeMap<String, String>,
}

/// Why a tree could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// A file or a directory could not be read.
    #[error("{path} could not be read")]
    Unreadable {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not UTF-8.
    #[error("{path} is not UTF-8 text")]
    NotText {
        /// Which one.
        path: PathBuf,
    },
}

// The macro names each file with include_bytes!, so a change of one rebuilds the crate. A new file is seen
// with the next rebuild, which comes with whatever first refers to it: states/top.yaml or another state.
#[derive(RustEmbed)]
#[folder = "states/"]
#[allow_missing = true]
struct EmbeddedStates;

#[derive(RustEmbed)]
#[folder = "templates/"]
#[allow_missing = true]
struct EmbeddedTemplates;

impl Tree {
    /// The tree that this binary was built with.
    ///
    /// # Errors
    /// [`TreeError::NotText`].
    pub fn embedded() -> Result<Self, TreeError> {
        Ok(Self {
            states: embedded::<EmbeddedStates>("states")?,
            templates: embedded::<EmbeddedTemplates>("templates")?,
        })
    }

    /// The tree in a directory that holds `states/` and `templates/`. Either may be missing.
    ///
    /// # Errors
    /// When something there cannot be read as text, the first such thing.
    pub fn directory(root: &Path) -> Result<Self, TreeError> {
        // A path that is wrong as a whole must not be an empty tree.
        read_dir(root)?;
        let folder = |name: &str| {
            let mut files = BTreeMap::new();
            let path = root.join(name);
            if path.is_dir() {
                read_folder(&path, "", &mut files)?;
            }
            Ok(files)
        };
        Ok(Self { states: folder("states")?, templates: folder("templates")? })
    }

    /// Every file of `states/`: its path below it, and its text.
    pub fn states(&self) -> impl Iterator<Item = (&str, &str)> {
        self.states.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Every file of `templates/`: its path below it, and its text.
    pub fn templates(&self) -> impl Iterator<Item = (&str, &str)> {
        self.templates.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }
}

fn embedded<Folder: RustEmbed>(name: &str) -> Result<BTreeMap<String, String>, TreeError> {
    let visible = Folder::iter().filter(|path| !path.split('/').any(|part| part.starts_with('.')));
    let texts = visible.filter_map(|path| {
        let file = Folder::get(&path)?;
        Some(match String::from_utf8(file.data.into_owned()) {
            Ok(text) => Ok((path.into_owned(), text)),
            Err(_) => Err(TreeError::NotText { path: Path::new(name).join(path.as_ref()) }),
        })
    });
    texts.collect()
}

fn read_dir(path: &Path) -> Result<std::fs::ReadDir, TreeError> {
    std::fs::read_dir(path).map_err(|source| TreeError::Unreadable { path: path.to_owned(), source })
}

fn read_folder(folder: &Path, prefix: &str, files: &mut BTreeMap<String, String>) -> Result<(), TreeError> {
    for entry in read_dir(folder)? {
        let unreadable = |source| TreeError::Unreadable { path: folder.to_owned(), source };
        let path = entry.map_err(unreadable)?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            return Err(TreeError::NotText { path });
        };
        let below = format!("{prefix}{name}");
        if name.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            read_folder(&path, &format!("{below}/"), files)?;
            continue;
        }
        let bytes =
            std::fs::read(&path).map_err(|source| TreeError::Unreadable { path: path.clone(), source })?;
        let text = String::from_utf8(bytes).map_err(|_| TreeError::NotText { path })?;
        files.insert(below, text);
    }
    Ok(())
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
    fn a_directory_that_is_not_there_is_an_error_and_not_an_empty_tree() {
        let error = Tree::directory(Path::new("/nonexistent")).unwrap_err();
        assert_eq!(error.to_string(), "/nonexistent could not be read");
    }

    #[test]
    fn the_embedded_tree_is_text() {
        Tree::embedded().unwrap();
    }
}
