//! `metalform reset-host`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::failure::Failure;
use super::invocation::Invocation;
use super::operation_arguments::OperationArguments;
use super::output::print;
use crate::model::name::HostName;
use crate::report::host_differences::text;
use crate::service::cluster_changes::ClusterChanges;
use crate::service::reset::{ResetRequest, ResetSelection, compare, judge, reset};

/// Make hosts what they were before they became nodes
///
/// Packages, files, units, users, kernel settings, routes, rules, mounts and package sources are given back; what metalform
/// did not bring is not touched. What was there before is recorded on each host when metalform first changes it. A host
/// that the cluster uses is refused: `metalform remove-node` removes a node and resets its host.
#[derive(Debug, Args)]
pub struct ResetHost {
    /// Names of Nodes
    #[arg(required_unless_present = "filename", value_name = "NAME")]
    names: Vec<HostName>,
    /// The manifest of a Node, which the cluster need not have any more
    #[arg(long, short, value_name = "FILE", conflicts_with = "names")]
    filename: Option<PathBuf>,
    /// Only list what differs from the record; exit with code 4 where something of metalform is left
    #[arg(long, conflicts_with = "dry_run")]
    check: bool,
    /// Leave the data of the node: etcd's, images, volumes, logs of pods
    #[arg(long)]
    keep_data: bool,
    #[command(flatten)]
    operation: OperationArguments,
}

impl ResetHost {
    /// Runs the command.
    ///
    /// # Errors
    /// When no host is known, when one failed, and for a check when something is left.
    pub async fn run(&self, invocation: &Invocation) -> Result<ExitCode, Failure> {
        let hosts = match &self.filename {
            Some(file) => ResetSelection::Manifest(file.clone()),
            None => ResetSelection::Named(self.names.iter().cloned().collect()),
        };
        let run = self.operation.run_options();
        let request = ResetRequest { hosts, run, keep_data: self.keep_data };
        if self.check {
            let workspace = self.operation.open_unrecorded(invocation).await?;
            let compared = compare(&request, workspace, &invocation.cancel).await?;
            print(&text(&compared))?;
            judge(&request, &compared)?;
            return Ok(ExitCode::SUCCESS);
        }
        let workspace = self.operation.open(invocation).await?;
        let reports = reset(&request, workspace, &invocation.cancel).await?;
        self.operation.finish("ResetHost", &reports, &ClusterChanges::default())
    }
}
