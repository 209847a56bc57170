//! The file tree of a scripted host, by absolute path. The root directory is not an entry.

use std::collections::BTreeMap;

use metalform::resource::contract::probe::PathState;
use metalform::resource::contract::step::Access;
use sha2::{Digest, Sha256};

/// Content larger than this does not travel with an answer.
const LARGEST: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    File {
        content: Content,
        access: Access,
        /// Seconds on the host's clock.
        written: u64,
    },
    Directory(Access),
    Symlink(String),
    Other,
}

/// Of some files only the digest matters: what was downloaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    Bytes(Vec<u8>),
    Digest { sha256: String, size: u64 },
}

impl Content {
    pub fn sha256(&self) -> String {
        match self {
            Self::Bytes(bytes) => hex::encode(Sha256::digest(bytes)),
            Self::Digest { sha256, .. } => sha256.clone(),
        }
    }

    fn size(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Digest { size, .. } => *size,
        }
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Bytes(text.as_bytes().to_vec())
    }
}

/// `root:root` with this mode.
pub fn of_root(mode: u32) -> Access {
    Access { owner: "root".to_owned(), group: "root".to_owned(), mode }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree(BTreeMap<String, Entry>);

impl Tree {
    pub fn get(&self, path: &str) -> Option<&Entry> {
        self.0.get(path)
    }

    pub fn is_directory(&self, path: &str) -> bool {
        path == "/" || matches!(self.get(path), Some(Entry::Directory(_)))
    }

    /// The content of a file; a link is followed once.
    pub fn read(&self, path: &str) -> Option<&[u8]> {
        let entry = match self.get(path)? {
            Entry::Symlink(target) => self.get(target)?,
            entry => entry,
        };
        match entry {
            Entry::File { content: Content::Bytes(bytes), .. } => Some(bytes),
            _ => None,
        }
    }

    /// The digest of a file.
    pub fn sha256(&self, path: &str) -> Option<String> {
        match self.get(path)? {
            Entry::File { content, .. } => Some(content.sha256()),
            _ => None,
        }
    }

    pub fn text(&self, path: &str) -> Option<String> {
        self.read(path).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// When a file was written, in seconds on the host's clock.
    pub fn written(&self, path: &str) -> Option<u64> {
        match self.get(path)? {
            Entry::File { written, .. } => Some(*written),
            _ => None,
        }
    }

    /// As `Probe::Path` answers: the content comes only where its digest is asked for and differs.
    pub fn state(&self, path: &str, unless_sha256: Option<&str>) -> PathState {
        match self.get(path) {
            None if path == "/" => directory_state(&of_root(0o755)),
            None => PathState::Absent,
            Some(Entry::Other) => PathState::Other,
            Some(Entry::Symlink(target)) => PathState::Symlink { target: target.clone() },
            Some(Entry::Directory(access)) => directory_state(access),
            Some(Entry::File { content, access, .. }) => {
                let sha256 = content.sha256();
                let differs = unless_sha256.is_some_and(|expected| expected != sha256);
                let travels = differs && content.size() <= LARGEST;
                PathState::File {
                    mode: access.mode,
                    owner: access.owner.clone(),
                    group: access.group.clone(),
                    size: content.size(),
                    content: match content {
                        Content::Bytes(bytes) if travels => Some(bytes.clone()),
                        _ => None,
                    },
                    sha256,
                }
            }
        }
    }

    /// Writes a file and the parents that it lacks.
    pub fn write(&mut self, path: &str, content: Content, access: Access, now: u64) {
        self.make_parents(path);
        self.0.insert(path.to_owned(), Entry::File { content, access, written: now });
    }

    pub fn put(&mut self, path: &str, entry: Entry) {
        self.make_parents(path);
        self.0.insert(path.to_owned(), entry);
    }

    fn make_parents(&mut self, path: &str) {
        let mut path = path;
        while let Some((parent, _)) = path.rsplit_once('/').filter(|(parent, _)| !parent.is_empty()) {
            self.0.entry(parent.to_owned()).or_insert_with(|| Entry::Directory(of_root(0o755)));
            path = parent;
        }
    }

    pub fn set_access(&mut self, path: &str, access: &Access) -> bool {
        match self.0.get_mut(path) {
            Some(Entry::File { access: present, .. } | Entry::Directory(present)) => {
                *present = access.clone();
                true
            }
            _ => false,
        }
    }

    /// Paths directly or indirectly in a directory.
    pub fn below(&self, directory: &str) -> Vec<String> {
        let prefix = format!("{}/", directory.trim_end_matches('/'));
        self.0.keys().filter(|path| path.starts_with(&prefix)).cloned().collect()
    }

    /// Removes what is at a path, a directory with all that is in it.
    pub fn remove(&mut self, path: &str) {
        for inner in self.below(path) {
            self.0.remove(&inner);
        }
        self.0.remove(path);
    }

    /// Moves a file or a directory with all that is in it.
    pub fn rename(&mut self, from: &str, to: &str) {
        for path in self.below(from).into_iter().chain([from.to_owned()]) {
            if let Some(entry) = self.0.remove(&path) {
                self.put(&format!("{to}{}", &path[from.len()..]), entry);
            }
        }
    }

    /// Files that match a pattern of the shell whose only `*` is in the last component.
    pub fn glob(&self, pattern: &str) -> Vec<String> {
        let (directory, name) = pattern.rsplit_once('/').unwrap_or(("", pattern));
        let Some((start, end)) = name.split_once('*') else {
            return self.get(pattern).map(|_| pattern.to_owned()).into_iter().collect();
        };
        let matches = |path: &String| {
            path.rsplit_once('/').is_some_and(|(parent, last)| {
                parent == directory
                    && !last.starts_with('.')
                    && last.len() >= start.len() + end.len()
                    && last.starts_with(start)
                    && last.ends_with(end)
            })
        };
        self.0.keys().filter(|path| matches(path)).cloned().collect()
    }
}

fn directory_state(access: &Access) -> PathState {
    PathState::Directory { mode: access.mode, owner: access.owner.clone(), group: access.group.clone() }
}
