//! Which hosts a command works on, and how each is reached.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::cluster_nodes::{self, ClusterNodesError};
use super::command_context::CommandContext;
use super::command_error::{CommandError, ErrorClass};
use super::roster_files::{self, RosterFilesError};
use super::ssh_options::{SshOptions, SshOptionsError};
use crate::engine::cancel::CancelLevel;
use crate::model::name::{HostName, NameError};
use crate::model::role::Role;
use crate::model::roster::{Host, Roster};
use crate::model::selector::{Selector, SelectorError};
use crate::model::ssh_target::{HostKeyPolicy, SshTarget};
use crate::transport::pool::ConnectionPool;
use crate::workspace::layout::Layout;

/// The name of a machine whose hostname is no valid name of a Node.
const UNNAMED: &str = "localhost";

/// Where hosts are listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HostSource {
    /// This machine, without a roster.
    ThisMachine,
    /// YAML files; never none.
    Files(Vec<PathBuf>),
    /// The Nodes of the cluster.
    Kubernetes,
}

/// Which hosts.
#[derive(Debug, Clone)]
pub struct HostSelection {
    /// Where they are listed; `None` is an error for commands that do not default to this machine.
    pub source: Option<HostSource>,
    /// Only these of them.
    pub on: Option<Selector>,
    /// Whether the one selected host is this machine.
    pub local: bool,
    /// How they are logged in to.
    pub ssh: SshOptions,
}

/// The selected hosts.
pub struct SelectedHosts {
    /// Ordered by name; never none.
    pub hosts: Vec<Host>,
    /// The roster's variables for all hosts: `cluster` in templates.
    pub cluster: BTreeMap<String, Value>,
    pub(super) pool: ConnectionPool,
}

/// Why no hosts are selected.
#[derive(Debug, thiserror::Error)]
pub enum SelectError {
    /// Neither a roster nor this machine.
    #[error("no hosts specified")]
    NoSource,
    /// A roster cannot be used.
    #[error(transparent)]
    Roster(#[from] RosterFilesError),
    /// The Nodes cannot be used.
    #[error(transparent)]
    Nodes(#[from] ClusterNodesError),
    /// A roster without hosts.
    #[error("no hosts in {0}")]
    Empty(String),
    /// The selector does not fit the roster.
    #[error("--on: {0}")]
    Selector(#[from] SelectorError),
    /// `--local` with several hosts.
    #[error("--local requires exactly one host, but {0} are selected")]
    LocalIsOne(usize),
    /// The SSH options cannot be used.
    #[error(transparent)]
    Ssh(#[from] SshOptionsError),
    /// This machine cannot be named.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The caller cancelled the command.
    #[error("interrupted")]
    Interrupted,
}

impl CommandError for SelectError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Nodes(error) => error.class(),
            Self::Name(_) => ErrorClass::Bug,
            Self::Interrupted => ErrorClass::Interrupted,
            _ => ErrorClass::Configuration,
        }
    }

    fn errors(&self) -> Vec<String> {
        match self {
            Self::Roster(error) => error.errors(),
            Self::Nodes(error) => error.errors(),
            other => vec![other.to_string()],
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::NoSource => vec!["use --roster FILE, or --local for this machine".to_owned()],
            Self::LocalIsOne(_) => vec!["select one host with --on NAME".to_owned()],
            Self::Roster(error) => error.hints(),
            Self::Nodes(error) => error.hints(),
            Self::Ssh(error) => error.hints(),
            Self::Interrupted => vec!["run the same command again".to_owned()],
            Self::Empty(_) | Self::Selector(_) | Self::Name(_) => Vec::new(),
        }
    }
}

impl HostSelection {
    /// Selects the hosts. No host is connected to.
    ///
    /// # Errors
    /// When there is no source, it cannot be read, or no host of it is selected.
    pub async fn select(&self, context: &CommandContext<'_>) -> Result<SelectedHosts, SelectError> {
        tokio::select! {
            biased;
            () = context.cancel.reached(CancelLevel::AfterResource) => Err(SelectError::Interrupted),
            selected = self.select_uninterrupted(context) => selected,
        }
    }

    async fn select_uninterrupted(&self, context: &CommandContext<'_>) -> Result<SelectedHosts, SelectError> {
        let pool = async |local| self.ssh.pool(context.ssh, context.clock, local).await;
        let only_this = |host: Host| async {
            let pool = pool(Some(host.name.clone())).await?;
            Ok(SelectedHosts { hosts: vec![host], cluster: BTreeMap::new(), pool })
        };
        let (roster, described) = match &self.source {
            None if self.local => return only_this(this_machine()?).await,
            Some(HostSource::ThisMachine) => return only_this(this_machine()?).await,
            None => return Err(SelectError::NoSource),
            Some(HostSource::Kubernetes) => (of_cluster().await?, "the cluster".to_owned()),
            Some(HostSource::Files(files)) => {
                let names: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
                (roster_files::read(files)?, names.join(", "))
            }
        };
        let hosts: Vec<Host> = match &self.on {
            Some(selector) => selector.select(&roster)?.into_iter().cloned().collect(),
            None => roster.hosts.values().cloned().collect(),
        };
        let local = match (&hosts[..], self.local) {
            ([], _) => return Err(SelectError::Empty(described)),
            // A node of the cluster is not reached through its own sshd.
            (_, false) if self.source == Some(HostSource::Kubernetes) => own_name(&hosts),
            (_, false) => None,
            ([only], true) => Some(only.name.clone()),
            (several, true) => return Err(SelectError::LocalIsOne(several.len())),
        };
        Ok(SelectedHosts { hosts, cluster: roster.vars, pool: pool(local).await? })
    }

    /// The same, with this machine as the source where none is set.
    ///
    /// # Errors
    /// As [`HostSelection::select`].
    pub async fn select_or_local(&self, context: &CommandContext<'_>) -> Result<SelectedHosts, SelectError> {
        let source = self.source.clone().unwrap_or(HostSource::ThisMachine);
        Self { source: Some(source), ..self.clone() }.select(context).await
    }

    /// With relative paths resolved against `directory`.
    #[must_use]
    pub fn resolved(&self, directory: &Path) -> Self {
        let source = self.source.clone().map(|source| match source {
            HostSource::Files(files) => {
                HostSource::Files(files.iter().map(|file| directory.join(file)).collect())
            }
            other => other,
        });
        Self { source, ssh: self.ssh.resolved(directory), ..self.clone() }
    }
}

fn this_machine() -> Result<Host, NameError> {
    Ok(Host {
        name: hostname().parse().or_else(|_| UNNAMED.parse())?,
        ssh: SshTarget {
            host: "127.0.0.1".to_owned(),
            port: 22,
            user: "root".to_owned(),
            identity_files: Vec::new(),
            identities_only: true,
            sudo: false,
            host_key: HostKeyPolicy::Known,
            bastion: None,
        },
        roles: [Role::Node].into(),
        labels: BTreeMap::new(),
        taints: Vec::new(),
        vars: BTreeMap::new(),
    })
}

async fn of_cluster() -> Result<Roster, ClusterNodesError> {
    let nodes = cluster_nodes::list(&Layout::default()).await?;
    Ok(cluster_nodes::specs(&nodes)?.into_iter().map(Host::from).collect())
}

fn own_name(hosts: &[Host]) -> Option<HostName> {
    let own = hostname();
    hosts.iter().map(|host| &host.name).find(|name| name.as_str() == own).cloned()
}

pub(super) fn hostname() -> String {
    // An unreadable hostname is treated as no hostname.
    let text = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    text.trim().to_owned()
}
