//! Options of operations on the cluster, and the output of their reports.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use super::failure::{Exit, Failure};
use super::invocation::Invocation;
use super::output::{Format, document, paint, print};
use super::ssh_arguments::SshArguments;
use super::workspace;
use crate::model::resumption::ResumedBy;
use crate::operation::cluster_site::Workspace;
use crate::report::document::HostsDocument;
use crate::report::operation_report::{rows, text};
use crate::report::{host_key_table, membership_table, obsolete_images};
use crate::service::cluster_changes::ClusterChanges;
use crate::service::operation_failure;
use crate::service::operation_report::{NodeReport, RunOptions};
use crate::service::workspace_origin::WorkspaceOrigin;

/// Options of operations on the cluster.
#[derive(Debug, Args)]
pub struct OperationArguments {
    #[command(flatten)]
    ssh: SshArguments,
    /// Only show what each phase would do, with diffs; changes nothing
    #[arg(long)]
    dry_run: bool,
    /// With --dry-run: exit with code 2 when there are changes
    #[arg(long, requires = "dry_run")]
    detailed_exitcode: bool,
    /// Where another operation runs on a host: how long to wait for its end, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    wait: u64,
    /// Output format
    #[arg(long, short, default_value = "table")]
    output: Format,
}

impl OperationArguments {
    /// Opens the workspace. What changes the cluster is recorded from here on.
    ///
    /// # Errors
    /// The first part of the workspace that is missing or wrong.
    pub async fn open(&self, invocation: &Invocation) -> Result<Arc<Workspace>, Failure> {
        self.open_from(invocation, self.origin(invocation)).await
    }

    /// As [`Self::open`], from another origin.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn open_from(
        &self,
        invocation: &Invocation,
        origin: WorkspaceOrigin,
    ) -> Result<Arc<Workspace>, Failure> {
        if !self.dry_run {
            invocation.recording.begin();
        }
        workspace::open_from(invocation, origin).await
    }

    /// What the options specify of the workspace.
    pub fn origin(&self, invocation: &Invocation) -> WorkspaceOrigin {
        let mut origin = workspace::origin(invocation, &self.ssh);
        origin.ssh.dry_run = self.dry_run;
        origin
    }

    /// Opens the workspace for what changes nothing.
    ///
    /// # Errors
    /// The first part of the workspace that is missing or wrong.
    pub async fn open_unrecorded(&self, invocation: &Invocation) -> Result<Arc<Workspace>, Failure> {
        let mut origin = self.origin(invocation);
        origin.ssh.dry_run = true;
        workspace::open_from(invocation, origin).await
    }

    /// How the operation is run.
    pub fn run_options(&self) -> RunOptions {
        RunOptions {
            dry_run: self.dry_run,
            lock_wait: Duration::from_secs(self.wait),
            resumed: ResumedBy::SameCommand,
        }
    }

    /// Writes the report of all nodes, also of those that failed, and what else changes.
    ///
    /// # Errors
    /// When a node failed, or standard output is closed.
    pub fn finish(
        &self,
        kind: &'static str,
        nodes: &[NodeReport],
        changes: &ClusterChanges,
    ) -> Result<ExitCode, Failure> {
        match self.output {
            Format::Json | Format::Yaml => {
                document(self.output, &HostsDocument::new(kind, &rows(nodes)).with(changes))?;
            }
            Format::Name => print(&nodes.iter().map(|node| format!("{}\n", node.name)).collect::<String>())?,
            Format::Table | Format::Wide => {
                let (steps, host_keys) = (&changes.steps, &changes.host_keys);
                let texts = [
                    text(nodes, paint()),
                    membership_table::text(steps),
                    host_key_table::text(host_keys),
                    obsolete_images::text(&changes.obsolete_images),
                ];
                print(&texts.concat())?;
            }
        }
        if let Some(failures) = operation_failure::of(nodes.iter().filter_map(|node| node.failure.as_ref())) {
            return Err(failures.into());
        }
        let changes = nodes.iter().any(NodeReport::has_changes) || !changes.obsolete_images.is_empty();
        Ok(if self.detailed_exitcode && changes {
            ExitCode::from(Exit::Changes as u8)
        } else {
            ExitCode::SUCCESS
        })
    }
}
