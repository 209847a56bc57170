//! `metalform render`.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;

use super::failure::Failure;
use super::invocation::Invocation;
use super::output::{Format, document, print};
use super::state_arguments::StateArguments;
use crate::report::rendered::Rendered;
use crate::service::render::render;

/// Show the resources that states result in on hosts, with all values filled in; changes nothing
///
/// Collects facts from hosts whose states depend on them. Values of sensitive resources are not shown.
#[derive(Debug, Args)]
pub struct RenderArgs {
    #[command(flatten)]
    states: StateArguments,
    /// Output format; "name" lists the ids of resources
    #[arg(long, short, default_value = "yaml")]
    output: Format,
}

impl RenderArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// When states or hosts cannot be read, and for each host whose states cannot be compiled.
    pub async fn run(&self, invocation: &Invocation) -> Result<ExitCode, Failure> {
        let report = render(&self.states.request(&invocation.global), &invocation.silent_context()).await?;
        let hosts: BTreeMap<&str, Vec<Rendered<'_>>> = report
            .hosts
            .iter()
            .filter_map(|(name, result)| {
                Some((name.as_str(), result.as_ref().ok()?.iter().map(Rendered).collect()))
            })
            .collect();
        match self.output {
            Format::Json => document(Format::Json, &hosts)?,
            Format::Name => {
                print(&hosts.values().flatten().map(|one| format!("{}\n", one.0.id)).collect::<String>())?
            }
            Format::Yaml | Format::Table | Format::Wide => document(Format::Yaml, &hosts)?,
        }
        report.failures().map_or(Ok(ExitCode::SUCCESS), |failures| Err(failures.into()))
    }
}
