//! `metalform etcd`.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::failure::Failure;
use super::output::{Format, document, print};
use crate::report::etcd_table::{HEADER, rows};
use crate::report::table::table;
use crate::service::etcd_members;
use crate::workspace::layout::Layout;

/// Inspect the members of etcd
#[derive(Debug, Args)]
pub struct EtcdArgs {
    #[command(subcommand)]
    command: EtcdVerb,
}

#[derive(Debug, Subcommand)]
enum EtcdVerb {
    /// List every member: voter or learner, leader, revision, database size, latency
    Members(EtcdShowArgs),
    /// List every member; exit with code 5 unless every voting member is healthy and no alarm is raised
    Health(EtcdShowArgs),
}

/// How members are shown.
#[derive(Debug, Args)]
struct EtcdShowArgs {
    /// Output format
    #[arg(long, short, default_value = "table")]
    output: Format,
}

impl EtcdArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// When no member answers; for `health`, when one is not healthy.
    pub async fn run(&self) -> Result<ExitCode, Failure> {
        let membership = etcd_members::members(&Layout::default()).await?;
        let (EtcdVerb::Members(show) | EtcdVerb::Health(show)) = &self.command;
        let rows = rows(&membership);
        match show.output {
            Format::Json | Format::Yaml => document(show.output, &rows)?,
            Format::Name => print(
                &membership.members.iter().map(|member| format!("{}\n", member.title())).collect::<String>(),
            )?,
            Format::Table | Format::Wide => {
                let cells: Vec<[String; 10]> = rows.iter().map(|row| row.cells()).collect();
                print(&table(&HEADER, &cells))?;
            }
        }
        if let EtcdVerb::Health(_) = &self.command {
            etcd_members::health(&membership)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
