//! The file of a saved plan: written by `plan --out FILE`, read by `apply --plan FILE`.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::{fs, io};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::build_identity::BuildIdentity;
use super::command_error::{CommandError, ErrorClass};
use super::hosts::{HostSelection, HostSource};
use super::ssh_options::SshOptions;
use super::states::{StateWork, StatesRequest};
use crate::engine::saved_plan::SavedHost;
use crate::engine::saved_plan::key::{Key, SALT};
use crate::model::api_contract::API_VERSION;
use crate::model::name::HostName;
use crate::workspace::atomic_file::{self, FileError};

const KIND: &str = "SavedPlan";

/// A saved plan. It contains names of hosts and resources and digests, and no content: see [`SavedHost`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlanFile {
    api_version: String,
    kind: String,
    /// The build that made the plan. Another build may compile states or plan changes differently.
    metalform: BuildIdentity,
    made: Timestamp,
    request: SavedRequest,
    /// Of the digests' key, hexadecimal.
    salt: String,
    /// Every selected host, also those without a plan: the desired state of a host may depend on the others.
    selected: Vec<HostName>,
    /// The plan of each host.
    pub hosts: BTreeMap<HostName, SavedHost>,
}

/// The request that the plan was made for; paths are absolute.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SavedRequest {
    tree: Option<PathBuf>,
    states: Vec<String>,
    source: Option<HostSource>,
    on: Option<String>,
    local: bool,
    ssh: SshOptions,
}

/// Why a plan's file cannot be written, read or used.
#[derive(Debug, thiserror::Error)]
pub enum PlanFileError {
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
    #[error("{}: expected {KIND} of {API_VERSION}, found {kind} of {api_version}", path.display())]
    OtherKind {
        /// The file.
        path: PathBuf,
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

impl CommandError for PlanFileError {
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
        vec!["make a new plan with `metalform plan --out FILE`".to_owned()]
    }
}

impl PlanFile {
    /// The plan of these hosts. Paths of `states` must be absolute.
    ///
    /// # Errors
    /// When the running build cannot be identified.
    pub fn new(
        salt: [u8; SALT],
        states: &StatesRequest,
        work: &StateWork,
        hosts: BTreeMap<HostName, SavedHost>,
    ) -> Result<Self, PlanFileError> {
        Ok(Self {
            api_version: API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            metalform: BuildIdentity::of_this_process().map_err(PlanFileError::Executable)?,
            made: work.began(),
            request: SavedRequest {
                tree: states.tree.clone(),
                states: states.states.iter().map(ToString::to_string).collect(),
                source: states.hosts.source.clone(),
                on: states.hosts.on.as_ref().map(ToString::to_string),
                local: states.hosts.local,
                ssh: states.hosts.ssh.clone(),
            },
            salt: hex::encode(salt),
            selected: work.hosts(),
            hosts,
        })
    }

    /// Writes the file atomically, with mode 0600 from the first instant.
    ///
    /// # Errors
    /// The system's.
    pub fn write(&self, path: &Path) -> Result<(), PlanFileError> {
        let json = |error| PlanFileError::Json { path: path.to_owned(), error };
        let text = serde_json::to_string_pretty(self).map_err(json)?;
        Ok(atomic_file::write(path, format!("{text}\n").as_bytes(), 0o600)?)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, is no saved plan, or was made by another build.
    pub fn read(path: &Path) -> Result<Self, PlanFileError> {
        let path_of = || path.to_owned();
        let text = fs::read_to_string(path).map_err(|error| PlanFileError::Io { path: path_of(), error })?;
        let file: Self =
            serde_json::from_str(&text).map_err(|error| PlanFileError::Json { path: path_of(), error })?;
        if (file.api_version.as_str(), file.kind.as_str()) != (API_VERSION, KIND) {
            let Self { api_version, kind, .. } = file;
            return Err(PlanFileError::OtherKind { path: path_of(), api_version, kind });
        }
        let this = BuildIdentity::of_this_process().map_err(PlanFileError::Executable)?;
        if file.metalform != this {
            let made_by = Box::new(file.metalform);
            return Err(PlanFileError::OtherBuild { path: path_of(), made_by, this: Box::new(this) });
        }
        Ok(file)
    }

    /// The key of its digests.
    ///
    /// # Errors
    /// When the salt is damaged.
    pub fn key(&self) -> Result<Key, PlanFileError> {
        let salt = hex::decode(&self.salt).ok().and_then(|salt| <[u8; SALT]>::try_from(salt).ok());
        let invalid = || PlanFileError::Invalid { field: "salt", reason: format!("expected {SALT} bytes") };
        Ok(Key::new(&salt.ok_or_else(invalid)?))
    }

    /// The request that the plan was made for.
    ///
    /// # Errors
    /// When a field is damaged.
    pub fn states(&self, limit: NonZeroUsize) -> Result<StatesRequest, PlanFileError> {
        let SavedRequest { tree, states, source, on, local, ssh } = &self.request;
        let invalid = |field: &'static str, error: &dyn std::error::Error| PlanFileError::Invalid {
            field,
            reason: error.to_string(),
        };
        let states = states.iter().map(|name| name.parse().map_err(|error| invalid("states", &error)));
        let on = on.as_ref().map(|on| on.parse().map_err(|error| invalid("on", &error))).transpose()?;
        Ok(StatesRequest {
            tree: tree.clone(),
            states: states.collect::<Result<_, _>>()?,
            hosts: HostSelection { source: source.clone(), on, local: *local, ssh: ssh.clone() },
            limit,
        })
    }

    /// Hosts that are selected now and were not, and the reverse.
    pub fn other_hosts(&self, selected: &[HostName]) -> Vec<String> {
        let new = selected.iter().filter(|host| !self.selected.contains(host));
        let gone = self.selected.iter().filter(|host| !selected.contains(host));
        new.map(|host| format!("{host}: selected now, but not when the plan was made"))
            .chain(gone.map(|host| format!("{host}: in the plan, but no longer selected")))
            .collect()
    }
}
