//! The files of a directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Path below a directory → path, of every file.
pub fn files_below(root: &Path) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                found.insert(path.strip_prefix(root).unwrap().display().to_string(), path);
            }
        }
    }
    found
}
