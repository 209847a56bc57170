//! Options of operations on the cluster, and the output of their reports.

use std::process::ExitCode;

use clap::Args;

use super::failure::{Exit, Failure};
use super::output::{Format, document, paint, print};
use super::ssh_arguments::SshArguments;
use crate::report::document::HostsDocument;
use crate::report::operation_report::{rows, text};
use crate::service::operation_failure;
use crate::service::operation_report::NodeReport;

/// Options of operations on the cluster.
#[derive(Debug, Args)]
pub struct OperationArguments {
    #[command(flatten)]
    pub ssh: SshArguments,
    /// Only show what each phase would do, with diffs; changes nothing
    #[arg(long)]
    pub dry_run: bool,
    /// With --dry-run: exit with code 2 when there are changes
    #[arg(long, requires = "dry_run")]
    detailed_exitcode: bool,
    /// Output format
    #[arg(long, short, default_value = "table")]
    output: Format,
}

impl OperationArguments {
    /// Writes the report of all nodes, also of those that failed.
    ///
    /// # Errors
    /// When a node failed, or standard output is closed.
    pub fn finish(&self, kind: &'static str, nodes: &[NodeReport]) -> Result<ExitCode, Failure> {
        match self.output {
            Format::Json | Format::Yaml => document(self.output, &HostsDocument::new(kind, &rows(nodes)))?,
            Format::Name => print(&nodes.iter().map(|node| format!("{}\n", node.name)).collect::<String>())?,
            Format::Table | Format::Wide => print(&text(nodes, paint()))?,
        }
        if let Some(failures) = operation_failure::of(nodes.iter().filter_map(|node| node.failure.as_ref())) {
            return Err(failures.into());
        }
        let changes = nodes.iter().any(NodeReport::has_changes);
        Ok(if self.detailed_exitcode && changes {
            ExitCode::from(Exit::Changes as u8)
        } else {
            ExitCode::SUCCESS
        })
    }
}
