//! What the files of saved plans have in common: they are of one kind, and of use to the build alone that made them.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::build_identity::BuildIdentity;
use super::command_error::{CommandError, ErrorClass};
use crate::engine::saved_plan::key::{Key, SALT};
use crate::model::api_contract::API_VERSION;
use crate::workspace::atomic_file::{self, FileError};

/// The file of a saved plan.
pub trait SavedFile: Serialize + DeserializeOwned {
    /// `kind` in the file.
    const KIND: &'static str;

    /// Of the digests' key, hexadecimal.
    fn salt(&self) -> &str;

    /// Writes the file atomically, with mode 0600 from the first instant.
    ///
    /// # Errors
    /// The system's.
    fn write(&self, path: &Path) -> Result<(), SavedFileError> {
        let json = |error| SavedFileError::Json { path: path.to_owned(), error };
        let text = serde_json::to_string_pretty(self).map_err(json)?;
        Ok(atomic_file::write(path, format!("{text}\n").as_bytes(), 0o600)?)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, has another kind, or was made by another build.
    fn read(path: &Path) -> Result<Self, SavedFileError> {
        let path_of = || path.to_owned();
        let json = |error| SavedFileError::Json { path: path_of(), error };
        let text = fs::read_to_string(path).map_err(|error| SavedFileError::Io { path: path_of(), error })?;
        // First what every kind and build has.
        let Header { api_version, kind, metalform } = serde_json::from_str(&text).map_err(json)?;
        if (api_version.as_str(), kind.as_str()) != (API_VERSION, Self::KIND) {
            return Err(SavedFileError::OtherKind {
                path: path_of(),
                expected: Self::KIND,
                api_version,
                kind,
            });
        }
        let this = BuildIdentity::of_this_process().map_err(SavedFileError::Executable)?;
        if metalform != this {
            let made_by = Box::new(metalform);
            return Err(SavedFileError::OtherBuild { path: path_of(), made_by, this: Box::new(this) });
        }
        serde_json::from_str(&text).map_err(json)
    }

    /// The key of its digests.
    ///
    /// # Errors
    /// When the salt is damaged.
    fn key(&self) -> Result<Key, SavedFileError> {
        let salt = hex::decode(self.salt()).ok().and_then(|salt| <[u8; SALT]>::try_from(salt).ok());
        let invalid = || SavedFileError::Invalid { field: "salt", reason: format!("expected {SALT} bytes") };
        Ok(Key::new(&salt.ok_or_else(invalid)?))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    api_version: String,
    kind: String,
    metalform: BuildIdentity,
}

/// Why the file of a saved plan cannot be written, read or used.
#[derive(Debug, thiserror::Error)]
pub enum SavedFileError {
    /// The system's error.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] FileError),
    /// The content cannot be parsed or serialised.
    #[error("{}: {error}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: serde_json::Error,
    },
    /// The file has another kind.
    #[error("{}: expected {expected} of {API_VERSION}, found {kind} of {api_version}", path.display())]
    OtherKind {
        /// The file.
        path: PathBuf,
        /// The kind expected.
        expected: &'static str,
        /// The API version found.
        api_version: String,
        /// The kind found.
        kind: String,
    },
    /// The plan was made by another build.
    #[error("{}: made by {}, but this is {}", path.display(), described(made_by, this), described(this, made_by))]
    OtherBuild {
        /// The file.
        path: PathBuf,
        /// The build that made it.
        made_by: Box<BuildIdentity>,
        /// The running build.
        this: Box<BuildIdentity>,
    },
    /// A field of the request or the salt is not valid.
    #[error("saved plan: invalid {field}: {reason}")]
    Invalid {
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The running executable cannot be read.
    #[error("/proc/self/exe: {0}")]
    Executable(io::Error),
}

/// The version, and the start of the digest where the versions are the same.
fn described(build: &BuildIdentity, other: &BuildIdentity) -> String {
    let digest = build.sha256.get(..12).filter(|_| build.version == other.version);
    match digest {
        Some(digest) => format!("build {digest} of metalform {}", build.version),
        None => format!("metalform {}", build.version),
    }
}

impl CommandError for SavedFileError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::OtherBuild { .. } => ErrorClass::Refused,
            Self::Executable(_) => ErrorClass::Bug,
            _ => ErrorClass::Configuration,
        }
    }

    fn errors(&self) -> Vec<String> {
        vec![self.to_string()]
    }

    fn hints(&self) -> Vec<String> {
        vec![
            "make a new plan with `metalform plan --out FILE`, or with `metalform expand --dry-run --out FILE`"
                .to_owned(),
        ]
    }
}
