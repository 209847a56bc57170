//! What killed builds have left.

use std::fs;
use std::io;
use std::path::Path;

/// Removes the files and directories whose names begin like this. Under the lock of their directory's owner no other build
/// uses them.
///
/// # Errors
/// From the operating system.
pub(super) fn sweep(directory: &Path, prefix: &str) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with(prefix) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
