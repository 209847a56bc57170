//! Files that appear whole, with their mode, and never in place of others.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::StoreError;

/// Mode of a private key.
pub(super) const PRIVATE: u32 = 0o600;
/// Mode of a certificate or public key.
pub(super) const PUBLIC: u32 = 0o644;

/// The content, or `None` where there is no such file.
pub(super) fn read(path: &Path) -> Result<Option<String>, StoreError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(path)(error)),
    }
}

/// Writes beside, syncs, and renames to a name that nothing has yet. Makes the directory when missing.
pub(super) fn publish(path: &Path, content: &str, mode: u32) -> Result<(), StoreError> {
    let folder = folder(path);
    fs::create_dir_all(folder).map_err(failed(folder))?;
    let mut beside = tempfile::Builder::new()
        .prefix(".metalform-")
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder)
        .map_err(failed(folder))?;
    // The umask took bits away when the file was made; it cannot have added any.
    beside.as_file().set_permissions(Permissions::from_mode(mode)).map_err(failed(path))?;
    beside.write_all(content.as_bytes()).map_err(failed(path))?;
    beside.as_file().sync_all().map_err(failed(path))?;
    beside.persist_noclobber(path).map_err(|error| failed(path)(error.error))?;
    sync(folder)
}

/// Gives a staged file its final name.
pub(super) fn promote(staged: &Path, path: &Path) -> Result<(), StoreError> {
    // A hard link refuses an existing name, where a rename would replace it.
    fs::hard_link(staged, path).map_err(failed(path))?;
    discard(staged)
}

/// Removes a file that may be there.
pub(super) fn discard(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Ok(()) => sync(folder(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(path)(error)),
    }
}

fn sync(folder: &Path) -> Result<(), StoreError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed(folder))
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    |reason| StoreError::File { path: path.to_owned(), reason }
}
