//! A bundle in the making, beside the directory that it replaces in one rename.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::manifest;
use crate::model::parent_directory::parent_directory;

/// Bits that a directory must have, and those of a file: the servers of a bundle are not the user that made it.
const DIRECTORY: u32 = 0o755;
const FILE: u32 = 0o644;

/// Removed when dropped.
#[derive(Debug)]
pub(super) struct Staging {
    directory: tempfile::TempDir,
    /// On the directory; the kernel releases it when the process ends.
    _lock: File,
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
    /// A file, which the kernel would exchange with a directory.
    #[error("{output} exists and is not a directory")]
    NotADirectory {
        /// Path of the file.
        output: String,
    },
    /// Another process has not finished its bundle.
    #[error("process {process} is writing {output}")]
    Busy {
        /// Path of the directory.
        output: String,
        /// Its identifier.
        process: String,
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
    /// When `output` is a file, or a directory that is neither a bundle nor empty, another process is writing it, or
    /// its parent cannot be written.
    pub(super) fn new(output: &Path) -> Result<Self, StagingError> {
        refuse_foreign(output)?;
        let write = StagingError::write(output);
        let parent = parent_directory(output);
        let name = output.file_name().ok_or_else(|| write(io::ErrorKind::InvalidFilename.into()))?;
        let prefix = format!(".{}.new-", name.to_string_lossy());
        create_readable(parent).map_err(write)?;
        if let Some(process) = remove_abandoned(parent, &prefix).map_err(write)? {
            return Err(StagingError::Busy { output: output.display().to_string(), process });
        }
        let make = || {
            let prefix = format!("{prefix}{}-", std::process::id());
            let directory = tempfile::Builder::new().prefix(&prefix).tempdir_in(parent)?;
            let lock = File::open(directory.path())?;
            lock.lock()?;
            fs::set_permissions(directory.path(), fs::Permissions::from_mode(DIRECTORY))?;
            Ok((directory, lock))
        };
        let (directory, lock) = make().map_err(write)?;
        Ok(Self { directory, _lock: lock, output: output.to_owned() })
    }

    /// Where its files belong.
    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Puts it where it belongs, readable for every user. At any instant the old bundle or this one is there, also after a
    /// power cut.
    ///
    /// # Errors
    /// From the operating system.
    pub(super) fn publish(self) -> Result<(), StagingError> {
        let replace = || {
            make_readable(self.directory.path())?;
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

/// Creates what is missing of a directory and its parents, whatever the umask.
fn create_readable(directory: &Path) -> io::Result<()> {
    let missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
    let created: Vec<&Path> = directory.ancestors().take_while(missing).collect();
    fs::create_dir_all(directory)?;
    created.into_iter().try_for_each(|path| fs::set_permissions(path, fs::Permissions::from_mode(DIRECTORY)))
}

/// Adds the bits that are missing below a directory. Of a file that others have too, as a cache does, no other changes.
fn make_readable(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let (path, metadata) = (entry.path(), entry.metadata()?);
        let needed = if metadata.is_dir() { DIRECTORY } else { FILE };
        let mode = metadata.permissions().mode();
        if !metadata.is_symlink() && mode & needed != needed {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode | needed))?;
        }
        if metadata.is_dir() {
            make_readable(&path)?;
        }
    }
    Ok(())
}

/// Removes the directories of this prefix that no process has locked. Returns the process of one that is locked.
fn remove_abandoned(parent: &Path, prefix: &str) -> io::Result<Option<String>> {
    for entry in fs::read_dir(parent)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(rest) = name.strip_prefix(prefix) else { continue };
        match File::open(entry.path())?.try_lock() {
            Ok(()) => fs::remove_dir_all(entry.path())?,
            Err(TryLockError::WouldBlock) => {
                return Ok(Some(rest.split('-').next().unwrap_or_default().to_owned()));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(None)
}

/// # Errors
/// When there is a file, or a directory with files that are not a bundle.
pub(super) fn refuse_foreign(output: &Path) -> Result<(), StagingError> {
    // A link that leads nowhere is not replaced either.
    if fs::symlink_metadata(output).is_ok() && !output.is_dir() {
        return Err(StagingError::NotADirectory { output: output.display().to_string() });
    }
    let has_entries = fs::read_dir(output).is_ok_and(|mut entries| entries.next().is_some());
    if has_entries && !output.join(manifest::FILE_NAME).exists() {
        return Err(StagingError::NotABundle { output: output.display().to_string() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As with umask 077.
    #[test]
    fn what_is_published_can_be_read_by_every_user() {
        let directory = tempfile::tempdir().unwrap();
        let output = directory.path().join("srv/out");
        let staging = Staging::new(&output).unwrap();
        let modes = [("apt/pool/a.deb", 0o600), ("apt/tool", 0o700), ("apt/pool", 0o700), ("apt", 0o2700)];
        fs::create_dir_all(staging.path().join("apt/pool")).unwrap();
        for (name, mode) in modes {
            let path = staging.path().join(name);
            if !path.is_dir() {
                fs::write(&path, "").unwrap();
            }
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        staging.publish().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        let found = modes.map(|(name, _)| mode(&output.join(name)));
        assert_eq!(found, [0o644, 0o744, 0o755, 0o2755]);
        assert_eq!((mode(&output), mode(&directory.path().join("srv"))), (0o755, 0o755));
    }

    #[test]
    fn what_is_no_directory_is_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("metalk8s.iso"), "ISO").unwrap();
        fs::create_dir(path("bundle")).unwrap();
        let links = [("to-file", "metalk8s.iso"), ("to-nothing", "absent"), ("to-bundle", "bundle")];
        for (link, target) in links {
            std::os::unix::fs::symlink(path(target), path(link)).unwrap();
        }
        for name in ["metalk8s.iso", "to-file", "to-nothing"] {
            let error = Staging::new(&path(name)).unwrap_err();
            assert_eq!(error.to_string(), format!("{} exists and is not a directory", path(name).display()));
        }
        assert_eq!(fs::read(path("metalk8s.iso")).unwrap(), b"ISO");
        for name in ["bundle", "to-bundle", "absent"] {
            Staging::new(&path(name)).unwrap();
        }
    }

    #[test]
    fn a_directory_that_a_process_writes_is_left_to_it() {
        let directory = tempfile::tempdir().unwrap();
        let output = directory.path().join("out");
        fs::create_dir(directory.path().join(".out.new-1-abandoned")).unwrap();
        let first = Staging::new(&output).unwrap();
        assert!(!directory.path().join(".out.new-1-abandoned").exists());
        let error = Staging::new(&output).unwrap_err();
        let process = std::process::id();
        assert_eq!(error.to_string(), format!("process {process} is writing {}", output.display()));
        assert!(first.path().exists());
        let other = Staging::new(&directory.path().join("other")).unwrap();
        other.publish().unwrap();
        first.publish().unwrap();
        Staging::new(&output).unwrap().publish().unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }
}
