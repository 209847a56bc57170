//! `metalform apply`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::failure::Failure;
use super::fleet_arguments::FleetArguments;
use super::invocation::Invocation;
use super::output::{Format, document, print};
use super::plan::{self, PlanOutput};
use super::state_arguments::StateArguments;
use crate::model::event::Event;
use crate::report::document::HostsDocument;
use crate::report::plain::Detail;
use crate::report::run_report::{self, HostRow};
use crate::service::apply::{ApplyRequest, apply};
use crate::service::apply_saved_plan::{ApplySavedPlanRequest, apply_saved_plan};

/// Apply states to hosts; needs no cluster
///
/// Resources that already match are not changed. An unreachable host is skipped and reported: exit code 3 if nothing
/// else failed, 4 if a host failed. After the first interrupt (Ctrl-C), each host finishes its current resource, and
/// what was not done is reported; after the second, everything ends at once. Both exit with code 130.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    #[command(flatten)]
    states: StateArguments,
    #[command(flatten)]
    fleet: FleetArguments,
    /// Apply the plan saved by `plan --out FILE`, and nothing else; if a host, a state or a value has changed since
    /// then, change nothing and exit with code 7
    #[arg(long, value_name = "FILE", conflicts_with_all = ["states", "roster", "on", "local", "dry_run"])]
    plan: Option<PathBuf>,
    /// Only show what would change, as `plan` does
    #[arg(long)]
    dry_run: bool,
    /// With --dry-run: exit with code 2 if there are changes
    #[arg(long, requires = "dry_run")]
    detailed_exitcode: bool,
    /// Output format
    #[arg(long, short, default_value = "table")]
    output: Format,
}

impl ApplyArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// When states or hosts cannot be read, and when a host failed.
    pub async fn run(&self, invocation: &Invocation) -> Result<ExitCode, Failure> {
        if self.dry_run {
            let output = PlanOutput { format: self.output, detailed: self.detailed_exitcode, out: None };
            return plan::run(self.states.request(&invocation.global), output, invocation).await;
        }
        let reporter = invocation.global.reporter(Detail::Resources);
        let events = |event: Event| reporter.event(&event);
        let context = invocation.context(&events);
        let report = match &self.plan {
            Some(path) => {
                let request = ApplySavedPlanRequest {
                    path: path.clone(),
                    ssh: self.states.hosts.ssh.options(),
                    limit: self.states.hosts.limit,
                    fleet: self.fleet.options(),
                };
                apply_saved_plan(&request, &context).await?
            }
            None => {
                let states = self.states.request(&invocation.global);
                apply(&ApplyRequest { states, fleet: self.fleet.options() }, &context).await?
            }
        };
        // Clears the live lines before the result is printed.
        drop(reporter);
        let rows: Vec<HostRow> = report.hosts.iter().map(run_report::row).collect();
        match self.output {
            Format::Json | Format::Yaml => document(self.output, &HostsDocument::new("Apply", &rows))?,
            Format::Name => print(&rows.iter().map(|row| format!("{}\n", row.host)).collect::<String>())?,
            Format::Table | Format::Wide => print(&run_report::text(&rows))?,
        }
        report.failures().map_or(Ok(ExitCode::SUCCESS), |failures| Err(failures.into()))
    }
}
