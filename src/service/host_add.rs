//! `host add`: Hosts for the pool, all of them or none.

use std::path::PathBuf;

use kube::ResourceExt;
use kube::api::{Api, PostParams};
use serde::Serialize;

use super::command_error::{CommandError, ErrorClass};
use super::machine_api::{self, MachineApiError};
use super::roster_files::{self, RosterFilesError};
use crate::kube_api::FIELD_MANAGER;
use crate::kube_api::client::ApiError;
use crate::kube_api::nodes;
use crate::machine::api::host::HostObject;
use crate::machine::entered_host::{EnteredHost, EnteredHostError};
use crate::machine::host_addition::{self, HostAdditionError};
use crate::machine::occupied_node::occupied;
use crate::operation::cluster_site::ApiPort;

/// What to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostAddRequest {
    /// One Host.
    One(EnteredHost),
    /// Every host of a roster file.
    Roster(PathBuf),
}

/// A Host that was added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AddedHost {
    /// Its name.
    pub name: String,
    /// What SSH connects to.
    pub address: String,
}

/// Why no Host was added.
#[derive(Debug, thiserror::Error)]
pub enum HostAddError {
    /// The roster cannot be used.
    #[error(transparent)]
    Roster(#[from] RosterFilesError),
    /// The roster has no host.
    #[error("{}: no hosts", .0.display())]
    Empty(PathBuf),
    /// Entries are no Hosts.
    #[error("{}", lines(.0).join("; "))]
    Entries(Vec<EnteredHostError>),
    /// Hosts are machines that exist already.
    #[error("{}", lines(.0).join("; "))]
    Conflicts(Vec<HostAdditionError>),
    /// The API cannot be used, or refused a Host.
    #[error(transparent)]
    Api(#[from] MachineApiError),
    /// The API refused a Host after others were added.
    #[error("host {name} was not added: {source}; added before: {}", if added.is_empty() { "none".to_owned() } else { added.join(", ") })]
    Partial {
        /// The first one that was not added.
        name: String,
        /// Those that were.
        added: Vec<String>,
        /// Why.
        source: Box<MachineApiError>,
    },
}

fn lines<E: ToString>(errors: &[E]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

impl CommandError for HostAddError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Roster(_) | Self::Empty(_) | Self::Entries(_) => ErrorClass::Configuration,
            Self::Conflicts(_) => ErrorClass::Refused,
            Self::Api(error) => error.class(),
            Self::Partial { source, .. } => source.class(),
        }
    }

    fn errors(&self) -> Vec<String> {
        match self {
            Self::Roster(error) => error.errors(),
            Self::Entries(errors) => lines(errors),
            Self::Conflicts(errors) => lines(errors),
            Self::Api(error) => error.errors(),
            Self::Empty(_) | Self::Partial { .. } => vec![self.to_string()],
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Roster(error) => error.hints(),
            Self::Api(error) => error.hints(),
            Self::Partial { source, .. } => source.hints(),
            Self::Empty(_) => vec!["roster/example.yaml is an example of a roster".to_owned()],
            Self::Entries(_) => {
                vec!["no host was added; correct the entries and run the same command again".to_owned()]
            }
            Self::Conflicts(_) => {
                vec![
                    "no host was added; `metalform host list` and `metalform node list` list what exists"
                        .to_owned(),
                ]
            }
        }
    }
}

/// Adds Hosts. Every entry is judged first, then each is sent in a dry run, and only then the first one is written.
///
/// # Errors
/// Everything that is wrong with the entries, or all conflicts; then no Host was added. [`HostAddError::Partial`] names
/// those that were, where the API failed in between.
pub async fn add(port: &ApiPort, request: HostAddRequest) -> Result<Vec<AddedHost>, HostAddError> {
    let hosts = objects(request)?;
    let client = machine_api::connect(port).await?;
    let api: Api<HostObject> = Api::all(client.clone());
    let present = machine_api::list(&api).await?;
    let nodes = nodes::list(&client).await.map_err(MachineApiError::Api)?;
    let occupied: Vec<_> = nodes.iter().map(occupied).collect();
    let problems = host_addition::problems(&hosts, &present, &occupied);
    if !problems.is_empty() {
        return Err(HostAddError::Conflicts(problems));
    }
    for host in &hosts {
        create(&api, host, true).await?;
    }
    let mut added = Vec::new();
    for host in &hosts {
        if let Err(source) = create(&api, host, false).await {
            let added = added.into_iter().map(|host: AddedHost| host.name).collect();
            return Err(HostAddError::Partial { name: host.name_any(), added, source: Box::new(source) });
        }
        added.push(AddedHost { name: host.name_any(), address: host.spec.address.clone() });
    }
    Ok(added)
}

async fn create(api: &Api<HostObject>, host: &HostObject, dry_run: bool) -> Result<(), MachineApiError> {
    let parameters = PostParams { dry_run, field_manager: Some(FIELD_MANAGER.to_owned()) };
    let created = api.create(&parameters, host).await;
    created.map_err(|error| ApiError::new("create", format!("host/{}", host.name_any()), error))?;
    Ok(())
}

fn objects(request: HostAddRequest) -> Result<Vec<HostObject>, HostAddError> {
    let entries: Vec<Result<EnteredHost, EnteredHostError>> = match request {
        HostAddRequest::One(host) => vec![Ok(host)],
        HostAddRequest::Roster(path) => {
            let roster = roster_files::read(std::slice::from_ref(&path))?;
            if roster.hosts.is_empty() {
                return Err(HostAddError::Empty(path));
            }
            roster.hosts.values().map(EnteredHost::from_roster).collect()
        }
    };
    let (mut hosts, mut errors) = (Vec::new(), Vec::new());
    for entry in entries {
        match entry.and_then(|entry| entry.object()) {
            Ok(host) => hosts.push(host),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(hosts) } else { Err(HostAddError::Entries(errors)) }
}
