//! `metalform operations`.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::failure::Failure;
use super::output::{Format, document, print};
use crate::model::operation_record::OperationStatus;
use crate::model::operation_summary::OperationSummary;
use crate::operation::cluster_site::ApiPort;
use crate::report::diff::printable;
use crate::report::operations::{list, log_line, rows, summary, text};
use crate::service::operations;
use crate::workspace::layout::Layout;

/// How often a running operation is read again.
const PACE: Duration = Duration::from_millis(200);

/// Show operations on the cluster: who ran what, when, how it ended, what to do next
#[derive(Debug, Args)]
pub struct OperationsArgs {
    #[command(subcommand)]
    command: OperationsVerb,
}

#[derive(Debug, Subcommand)]
enum OperationsVerb {
    /// List the operations that are kept, the oldest first
    List {
        /// Output format
        #[arg(long, short, default_value = "table")]
        output: Format,
    },
    /// Show one operation: its phases, errors, hints and log
    Show {
        /// Its id [default: the newest]
        id: Option<String>,
        /// Output format
        #[arg(long, short, default_value = "table")]
        output: Format,
    },
    /// Write the log of an operation as it grows, until it ends; exit with its exit code
    Follow {
        /// Its id [default: the newest that runs]
        id: Option<String>,
    },
}

impl OperationsArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// When there is no such operation, or it cannot be read.
    pub async fn run(&self) -> Result<ExitCode, Failure> {
        let layout = Layout::default();
        let api = ApiPort::Kubeconfig(layout.admin_conf());
        match &self.command {
            OperationsVerb::List { output } => {
                let operations = operations::known(&layout, &api, summary).await?;
                match output {
                    Format::Json | Format::Yaml => document(*output, &rows(&operations))?,
                    Format::Name => print(&names(&operations))?,
                    Format::Table | Format::Wide => print(&list(&operations))?,
                }
            }
            OperationsVerb::Show { id, output } => {
                let operation = operations::known_one(&layout, &api, id.as_deref(), summary).await?;
                let operations = std::slice::from_ref(&operation);
                match output {
                    Format::Json | Format::Yaml => document(*output, &rows(operations))?,
                    Format::Name => print(&names(operations))?,
                    Format::Table | Format::Wide => print(&text(&operation))?,
                }
            }
            OperationsVerb::Follow { id } => return follow(&layout, id.as_deref()).await,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn names(operations: &[OperationSummary]) -> String {
    operations.iter().map(|operation| format!("{}\n", operation.id)).collect()
}

async fn follow(layout: &Layout, id: Option<&str>) -> Result<ExitCode, Failure> {
    let mut record = operations::to_follow(layout, id)?;
    let (id, mut shown) = (record.begun.id.clone(), 0);
    loop {
        let lines = record.events[shown..].iter().filter_map(|(time, event)| log_line(*time, event));
        print(&lines.map(|line| printable(&line) + "\n").collect::<String>())?;
        shown = record.events.len();
        if record.status() != OperationStatus::Running {
            break;
        }
        tokio::time::sleep(PACE).await;
        record = operations::one(layout, &id)?;
    }
    print(&format!("{}: {}\n", printable(&record.begun.command_line()), record.status()))?;
    let exit = record.ended.map_or(u8::from(!record.runs), |ended| ended.exit);
    Ok(ExitCode::from(exit))
}
