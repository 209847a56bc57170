//! The digest of this program, which other hosts run copies of.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::bundle::digest::Sha256;
use crate::workspace::atomic_file::FileError;
use crate::workspace::file_version::FileVersion;

/// Computed once for each content of the file: a command needs it for several hosts, and the controllers of Machines run
/// while the program is replaced.
#[derive(Default)]
pub struct ProgramDigest(Mutex<Option<(FileVersion, String)>>);

impl ProgramDigest {
    /// Of the program at this path, lowercase hex.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn of(&self, program: &Path) -> Result<String, FileError> {
        // Hosts that need it at the same time wait for the first.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Before the content is read: a file that is replaced meanwhile is read again.
        let version = FileVersion::of(&[program]);
        if let Some((of, digest)) = &*known
            && *of == version
        {
            return Ok(digest.clone());
        }
        let (digest, _) =
            Sha256::of_file(program).map_err(|reason| FileError { path: program.to_owned(), reason })?;
        let digest = digest.to_string();
        *known = Some((version, digest.clone()));
        Ok(digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::atomic_file;

    #[test]
    fn a_program_that_was_replaced_has_another_digest() {
        let root = tempfile::tempdir().unwrap();
        let program = root.path().join("metalform");
        let digest = ProgramDigest::default();
        assert!(digest.of(&program).is_err());
        for content in ["one", "two", "two"] {
            atomic_file::write(&program, content.as_bytes(), 0o755).unwrap();
            assert_eq!(digest.of(&program).unwrap(), Sha256::of(content.as_bytes()).to_string());
            assert_eq!(digest.of(&program).unwrap(), Sha256::of(content.as_bytes()).to_string());
        }
    }
}
