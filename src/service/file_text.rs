//! Files that people write: rosters, configurations.

use std::path::{Path, PathBuf};

use super::command_error::{CommandError, ErrorClass};
use crate::model::document::{self, TextError};

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileTextError {
    /// It cannot be read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// As given.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// It is too large, or not UTF-8 text.
    #[error("{}{}: {error}", path.display(), error.place())]
    NotText {
        /// As given.
        path: PathBuf,
        /// What was found.
        error: TextError,
    },
}

impl CommandError for FileTextError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Configuration
    }

    fn errors(&self) -> Vec<String> {
        vec![self.to_string()]
    }
}

/// Reads a file.
///
/// # Errors
/// When it cannot be read, is too large, or is not UTF-8 text.
pub fn read(path: &Path) -> Result<String, FileTextError> {
    let path_of = || path.to_owned();
    let bytes = std::fs::read(path).map_err(|error| FileTextError::Unreadable { path: path_of(), error })?;
    document::text(bytes).map_err(|error| FileTextError::NotText { path: path_of(), error })
}
