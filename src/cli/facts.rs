//! `metalform facts`.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;

use super::failure::Failure;
use super::host_arguments::HostArguments;
use super::invocation::Invocation;
use super::output::{Format, document, print};
use crate::model::facts::Facts;
use crate::report::facts_table;
use crate::service::facts::{FactsRequest, facts};

/// Show the facts of hosts, as states and templates see them; without --roster, of this machine
#[derive(Debug, Args)]
pub struct FactsArgs {
    #[command(flatten)]
    hosts: HostArguments,
    /// Output format
    #[arg(long, short, default_value = "table")]
    output: Format,
}

impl FactsArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// When the hosts cannot be selected, and for each host that failed.
    pub async fn run(&self, invocation: &Invocation) -> Result<ExitCode, Failure> {
        let request = FactsRequest { hosts: self.hosts.selection(), limit: self.hosts.limit };
        let report = facts(&request, &invocation.silent_context()).await?;
        let seen: BTreeMap<&str, &Facts> = report
            .hosts
            .iter()
            .filter_map(|(name, facts)| Some((name.as_str(), facts.as_ref().ok()?)))
            .collect();
        match self.output {
            Format::Json | Format::Yaml => document(self.output, &seen)?,
            Format::Name => print(&seen.keys().map(|name| format!("{name}\n")).collect::<String>())?,
            Format::Table | Format::Wide => {
                print(&facts_table::text(&seen, self.output == Format::Wide))?;
            }
        }
        report.failures().map_or(Ok(ExitCode::SUCCESS), |failures| Err(failures.into()))
    }
}
