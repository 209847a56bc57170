//! Options that select hosts.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;

use super::ssh_arguments::SshArguments;
use crate::engine::fleet;
use crate::model::selector::Selector;
use crate::service::hosts::{HostSelection, HostSource};

/// The roster that is the cluster itself.
const KUBERNETES: &str = "kubernetes";

/// Which hosts.
#[derive(Debug, Args)]
pub struct HostArguments {
    /// Hosts from a YAML file, or "kubernetes" for the Nodes of the cluster; may be repeated
    #[arg(long, value_name = "FILE")]
    roster: Vec<PathBuf>,
    /// Only these hosts: node-1, node-*, role:etcd, rack=a, role:etcd&rack=a, !node-3; separated by commas
    #[arg(long, value_name = "SELECTOR", requires = "roster")]
    on: Option<Selector>,
    /// Work on this machine without SSH; with --roster, as the one host selected by --on
    #[arg(long)]
    local: bool,
    /// Hosts to work on at the same time
    #[arg(long, value_name = "N", default_value_t = fleet::LIMIT)]
    pub limit: NonZeroUsize,
    /// How they are logged in to.
    #[command(flatten)]
    pub ssh: SshArguments,
}

impl HostArguments {
    /// The selection.
    pub fn selection(&self) -> HostSelection {
        let source = match self.roster.as_slice() {
            [] => None,
            [only] if only == Path::new(KUBERNETES) => Some(HostSource::Kubernetes),
            files => Some(HostSource::Files(files.to_vec())),
        };
        HostSelection { source, on: self.on.clone(), local: self.local, ssh: self.ssh.options() }
    }
}
