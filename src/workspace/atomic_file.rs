//! Files that appear whole, with their mode, or not at all.
//!
//! # Guarantees
//! The content is written to a temporary file in the same directory, synced, and renamed; the directory is synced
//! afterwards. The mode is right from the first instant. A missing directory is created, with mode 0755 whatever the
//! umask: a service that is not root's reads some of the files.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::model::parent_directory::parent_directory;

/// How the names of temporary files begin.
pub(super) const STAGED: &str = ".metalform-";

/// A file that could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct FileError {
    /// The file or its directory.
    pub path: PathBuf,
    /// From the operating system.
    pub reason: io::Error,
}

/// Writes a file, in place of one that exists.
///
/// # Errors
/// When it cannot be written; an existing file is then unchanged.
pub fn write(path: &Path, content: &[u8], mode: u32) -> Result<(), FileError> {
    stage(path, content, mode)?.persist(path).map_err(|error| failed(path)(error.error))?;
    sync(parent_directory(path))
}

/// Writes a file that does not exist yet.
///
/// # Errors
/// Also when it exists.
pub fn create(path: &Path, content: &[u8], mode: u32) -> Result<(), FileError> {
    stage(path, content, mode)?.persist_noclobber(path).map_err(|error| failed(path)(error.error))?;
    sync(parent_directory(path))
}

/// A file that does not exist yet and is written in parts; dropped, it leaves nothing.
#[derive(Debug)]
pub struct StagedFile {
    path: PathBuf,
    file: NamedTempFile,
}

impl StagedFile {
    /// Nothing is at `path` yet.
    ///
    /// # Errors
    /// When the file exists, or its directory cannot be written.
    pub fn new(path: &Path, mode: u32) -> Result<Self, FileError> {
        if path.symlink_metadata().is_ok() {
            return Err(failed(path)(io::ErrorKind::AlreadyExists.into()));
        }
        Ok(Self { path: path.to_owned(), file: stage(path, &[], mode)? })
    }

    /// Writes the next part.
    ///
    /// # Errors
    /// From the operating system.
    pub fn append(&mut self, part: &[u8]) -> io::Result<()> {
        self.file.write_all(part)
    }

    /// Makes it appear.
    ///
    /// # Errors
    /// Also when the file exists by now.
    pub fn create(self) -> Result<(), FileError> {
        let path = &self.path;
        self.file.as_file().sync_all().map_err(failed(path))?;
        self.file.persist_noclobber(path).map_err(|error| failed(path)(error.error))?;
        sync(parent_directory(path))
    }
}

/// The content, or `None` when there is no such file.
///
/// # Errors
/// When it cannot be read, or is not UTF-8.
pub fn read(path: &Path) -> Result<Option<String>, FileError> {
    match fs::read_to_string(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(path)(error)),
    }
}

/// Renames a file to a name that does not exist yet.
///
/// # Errors
/// Also when the new name exists. A crash in between leaves the file under both names.
pub fn rename_new(from: &Path, to: &Path) -> Result<(), FileError> {
    // A hard link refuses an existing name, where a rename would replace it.
    fs::hard_link(from, to).map_err(failed(to))?;
    remove(from)
}

/// Removes a file; one that does not exist is no error.
///
/// # Errors
/// When it cannot be removed.
pub fn remove(path: &Path) -> Result<(), FileError> {
    match fs::remove_file(path) {
        Ok(()) => sync(parent_directory(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(path)(error)),
    }
}

fn stage(path: &Path, content: &[u8], mode: u32) -> Result<NamedTempFile, FileError> {
    let directory = parent_directory(path);
    create_directories(directory)?;
    let mut staged = tempfile::Builder::new()
        .prefix(STAGED)
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(directory)
        .map_err(failed(directory))?;
    // The umask may have removed bits at creation; it cannot have added any.
    staged.as_file().set_permissions(Permissions::from_mode(mode)).map_err(failed(path))?;
    staged.write_all(content).map_err(failed(path))?;
    staged.as_file().sync_all().map_err(failed(path))?;
    Ok(staged)
}

fn create_directories(directory: &Path) -> Result<(), FileError> {
    let missing: Vec<_> = directory.ancestors().take_while(|ancestor| !is_directory(ancestor)).collect();
    for one in missing.into_iter().rev() {
        match fs::create_dir(one) {
            Ok(()) => fs::set_permissions(one, Permissions::from_mode(0o755)).map_err(failed(one))?,
            // Another process was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(one)(error)),
        }
    }
    Ok(())
}

/// The empty path is the current directory.
fn is_directory(path: &Path) -> bool {
    path.as_os_str().is_empty() || path.is_dir()
}

fn sync(directory: &Path) -> Result<(), FileError> {
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed(directory))
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> FileError {
    |reason| FileError { path: path.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_file_is_replaced_by_write_and_refused_by_create() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("new/directory/key");
        create(&path, b"one", 0o600).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        assert_eq!(create(&path, b"two", 0o600).unwrap_err().reason.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(read(&path).unwrap().as_deref(), Some("one"));
        write(&path, b"two", 0o644).unwrap();
        assert_eq!(read(&path).unwrap().as_deref(), Some("two"));
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o644);
        let parent = fs::metadata(path.parent().unwrap()).unwrap();
        assert_eq!(parent.mode() & 0o7777, 0o755);
        // Nothing temporary remains.
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_rename_never_replaces_a_file() {
        let root = tempfile::tempdir().unwrap();
        let (from, to) = (root.path().join("from"), root.path().join("to"));
        create(&from, b"one", 0o600).unwrap();
        create(&to, b"two", 0o600).unwrap();
        assert!(rename_new(&from, &to).is_err());
        remove(&to).unwrap();
        rename_new(&from, &to).unwrap();
        assert_eq!((read(&from).unwrap(), read(&to).unwrap().as_deref()), (None, Some("one")));
        remove(&from).unwrap();
    }
}
