//! The file of a saved plan: written by `plan --out FILE`, read by `apply --plan FILE`.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::build_identity::BuildIdentity;
use super::hosts::{HostSelection, HostSource};
use super::saved_file::{SavedFile, SavedFileError};
use super::ssh_options::SshOptions;
use super::states::{StateWork, StatesRequest};
use crate::engine::saved_plan::SavedHost;
use crate::engine::saved_plan::key::SALT;
use crate::model::api_contract::API_VERSION;
use crate::model::name::HostName;

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

impl SavedFile for PlanFile {
    const KIND: &'static str = "SavedPlan";

    fn salt(&self) -> &str {
        &self.salt
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
    ) -> Result<Self, SavedFileError> {
        Ok(Self {
            api_version: API_VERSION.to_owned(),
            kind: Self::KIND.to_owned(),
            metalform: BuildIdentity::of_this_process().map_err(SavedFileError::Executable)?,
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

    /// The request that the plan was made for.
    ///
    /// # Errors
    /// When a field is damaged.
    pub fn states(&self, limit: NonZeroUsize) -> Result<StatesRequest, SavedFileError> {
        let SavedRequest { tree, states, source, on, local, ssh } = &self.request;
        let invalid = |field: &'static str, error: &dyn std::error::Error| SavedFileError::Invalid {
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
