//! `metalform plan`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::failure::{Exit, Failure};
use super::invocation::Invocation;
use super::output::{Format, document, paint, print};
use super::state_arguments::StateArguments;
use crate::report::document::HostsDocument;
use crate::report::plan_report;
use crate::service::plan::{PlanReport, PlanRequest, plan};
use crate::service::saved_file::SavedFile;
use crate::service::states::StatesRequest;

/// Show what applying states would change on hosts, as diffs; changes nothing
///
/// A change that depends on the outcome of another one (a unit that a package installs) is not shown.
#[derive(Debug, Args)]
pub struct PlanArgs {
    #[command(flatten)]
    states: StateArguments,
    /// Exit with code 2 if there are changes
    #[arg(long)]
    detailed_exitcode: bool,
    /// Save the plan to this file, for `apply --plan FILE`; it contains no file content or secret, and has mode 0600
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Output format
    #[arg(long, short, default_value = "table")]
    output: Format,
}

/// How a plan is shown.
pub struct PlanOutput<'a> {
    /// The format.
    pub format: Format,
    /// Whether the exit code is 2 if there are changes.
    pub detailed: bool,
    /// Where the plan is saved.
    pub out: Option<&'a Path>,
}

impl PlanArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// When states or hosts cannot be read, or a host could not be compared with its states.
    pub async fn run(&self, invocation: &Invocation) -> Result<ExitCode, Failure> {
        let output =
            PlanOutput { format: self.output, detailed: self.detailed_exitcode, out: self.out.as_deref() };
        run(self.states.request(&invocation.global), output, invocation).await
    }
}

/// Makes and shows a plan; `apply --dry-run` does the same.
///
/// # Errors
/// When states or hosts cannot be read, or a host could not be compared with its states; the plans of the other hosts
/// were shown then.
pub async fn run(
    mut states: StatesRequest,
    output: PlanOutput<'_>,
    invocation: &Invocation,
) -> Result<ExitCode, Failure> {
    // A plan that is saved is for the machines that have these host keys.
    states.hosts.ssh.dry_run = output.out.is_none();
    let save_from = match output.out {
        Some(_) => Some(
            std::env::current_dir()
                .map_err(|error| Failure::new(Exit::Configuration, format!("current directory: {error}")))?,
        ),
        None => None,
    };
    let report = plan(&PlanRequest { states, save_from }, &invocation.silent_context()).await?;
    show(&report, output.format)?;
    if let (Some(path), Some(file)) = (output.out, &report.file) {
        file.write(path)?;
    }
    if let Some(failures) = report.failures() {
        return Err(failures.into());
    }
    let changes = output.detailed && report.has_changes();
    Ok(if changes { ExitCode::from(Exit::Changes as u8) } else { ExitCode::SUCCESS })
}

fn show(report: &PlanReport, format: Format) -> Result<(), Failure> {
    match format {
        Format::Json | Format::Yaml => {
            document(format, &HostsDocument::new("Plan", &plan_report::rows(&report.hosts)))
        }
        Format::Name => print(
            &plan_report::rows(&report.hosts)
                .into_iter()
                .filter(plan_report::PlanRow::has_changes)
                .map(|row| format!("{}\n", row.host))
                .collect::<String>(),
        ),
        Format::Table | Format::Wide => print(&plan_report::text(&report.hosts, paint())),
    }
}
