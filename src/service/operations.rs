//! `operations`: the records of operations on this machine.

use super::command_error::{CommandError, ErrorClass};
use crate::model::operation_record::{OperationRecord, OperationStatus};
use crate::workspace::atomic_file::FileError;
use crate::workspace::layout::Layout;
use crate::workspace::operation_log;

/// Why there is nothing to show.
#[derive(Debug, thiserror::Error)]
pub enum OperationsError {
    /// The records cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// There is no such operation.
    #[error("no operation {0} is recorded")]
    Unknown(String),
    /// There is none at all.
    #[error("no operation is recorded on this machine")]
    None,
}

impl CommandError for OperationsError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Configuration
    }

    fn errors(&self) -> Vec<String> {
        vec![self.to_string()]
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::File(_) => vec!["run this command as root on the bootstrap node".to_owned()],
            Self::Unknown(_) => vec!["`metalform operations list` lists those that are kept".to_owned()],
            Self::None => Vec::new(),
        }
    }
}

/// All records, the oldest first.
///
/// # Errors
/// When they cannot be read.
pub fn list(layout: &Layout) -> Result<Vec<OperationRecord>, OperationsError> {
    let mut records = Vec::new();
    for id in operation_log::ids(layout)? {
        // One may be removed meanwhile.
        records.extend(operation_log::read(layout, &id)?);
    }
    Ok(records)
}

/// The record with this id; without one, the newest.
///
/// # Errors
/// When there is none, or it cannot be read.
pub fn one(layout: &Layout, id: Option<&str>) -> Result<OperationRecord, OperationsError> {
    match id {
        Some(id) => operation_log::read(layout, id)?.ok_or_else(|| OperationsError::Unknown(id.to_owned())),
        None => list(layout)?.pop().ok_or(OperationsError::None),
    }
}

/// The record with this id; without one, the newest that runs, or else the newest.
///
/// # Errors
/// As [`one`].
pub fn to_follow(layout: &Layout, id: Option<&str>) -> Result<OperationRecord, OperationsError> {
    if id.is_some() {
        return one(layout, id);
    }
    let mut records = list(layout)?;
    let running = records.iter().rposition(|record| record.status() == OperationStatus::Running);
    match running {
        Some(position) => Ok(records.swap_remove(position)),
        None => records.pop().ok_or(OperationsError::None),
    }
}
