//! The directory of a file.

use std::path::Path;

/// The current directory for a bare name.
pub fn parent_directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
