//! A bundle in the making, beside the directory that it replaces in one rename.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::manifest;
use super::sweep::sweep;
use crate::model::parent_directory::parent_directory;

/// Removed when dropped.
#[derive(Debug)]
pub(super) struct Staging {
    directory: tempfile::TempDir,
    output: PathBuf,
}

/// Why a directory was not replaced.
#[derive(Debug, thiserror::Error)]
pub enum StagingError {
    /// Replacing the directory would destroy files that are not part of a bundle.
    #[error("{output} is not empty and not a bundle")]
    NotABundle {
        /// Path of the directory.
        output: String,
    },
    /// A directory could not be written.
    #[error("cannot write {path}")]
    Write {
        /// The directory.
        path: String,
        /// From the operating system.
        source: io::Error,
    },
}

impl StagingError {
    fn write(output: &Path) -> impl Fn(io::Error) -> Self + Copy {
        move |source| Self::Write { path: output.display().to_string(), source }
    }
}

impl Staging {
    /// Removes what a killed process has left beside `output`.
    ///
    /// # Errors
    /// When `output` is another directory than a bundle or an empty one, or its parent cannot be written.
    pub(super) fn new(output: &Path) -> Result<Self, StagingError> {
        refuse_foreign(output)?;
        let write = StagingError::write(output);
        let parent = parent_directory(output);
        let name = output.file_name().ok_or_else(|| write(io::ErrorKind::InvalidFilename.into()))?;
        let prefix = format!(".{}.new-", name.to_string_lossy());
        let make = || {
            fs::create_dir_all(parent)?;
            sweep(parent, &prefix)?;
            let directory = tempfile::Builder::new().prefix(&prefix).tempdir_in(parent)?;
            fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755))?;
            Ok(directory)
        };
        Ok(Self { directory: make().map_err(write)?, output: output.to_owned() })
    }

    /// Where its files belong.
    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Puts it where it belongs. At any instant the old bundle or this one is there, also after a power cut.
    ///
    /// # Errors
    /// From the operating system.
    pub(super) fn publish(self) -> Result<(), StagingError> {
        let replace = || {
            rustix::fs::syncfs(File::open(self.directory.path())?)?;
            if self.output.exists() {
                renameat_with(CWD, self.directory.path(), CWD, &self.output, RenameFlags::EXCHANGE)?;
                // The staging directory is now the old bundle.
                return self.directory.close();
            }
            fs::rename(self.directory.keep(), &self.output)
        };
        let output = self.output.clone();
        replace().map_err(StagingError::write(&output))
    }
}

/// # Errors
/// When there are files that are not a bundle.
pub(super) fn refuse_foreign(output: &Path) -> Result<(), StagingError> {
    let has_entries = fs::read_dir(output).is_ok_and(|mut entries| entries.next().is_some());
    if has_entries && !output.join(manifest::FILE_NAME).exists() {
        return Err(StagingError::NotABundle { output: output.display().to_string() });
    }
    Ok(())
}
