//! Rosters read from files.

use std::path::PathBuf;

use super::command_error::{CommandError, ErrorClass};
use super::file_text::{self, FileTextError};
use crate::model::document::{Document, Problems};
use crate::model::roster::Roster;

/// Why roster files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RosterFilesError {
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileTextError),
    /// Their content is wrong.
    #[error(transparent)]
    Problems(#[from] Problems),
}

impl CommandError for RosterFilesError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Configuration
    }

    fn errors(&self) -> Vec<String> {
        match self {
            Self::File(error) => error.errors(),
            Self::Problems(problems) => problems.0.iter().map(ToString::to_string).collect(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::File(_) => vec!["roster/example.yaml is an example of a roster".to_owned()],
            Self::Problems(_) => Vec::new(),
        }
    }
}

/// The hosts of all these files.
///
/// # Errors
/// The first file that cannot be read; else everything that is wrong with them.
pub fn read(paths: &[PathBuf]) -> Result<Roster, RosterFilesError> {
    let mut files = Vec::new();
    for path in paths {
        files.push((path.display().to_string(), file_text::read(path)?));
    }
    let documents: Vec<Document<'_>> = files.iter().map(|(file, text)| Document { file, text }).collect();
    Ok(Roster::parse(&documents)?)
}
