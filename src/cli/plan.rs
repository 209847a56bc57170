//! `metalform plan`.

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use super::Global;
use super::failure::{Exit, Failure};
use super::host_trouble::{self, HostTrouble, Outcomes};
use super::output::{Format, HostsDocument, document, paint, print};
use super::states::{StateArguments, StateWork};
use crate::engine;
use crate::engine::host::HostError;
use crate::report::diff::{self, Paint, Shown};
use crate::resource::change::{Difference, Verdict};

/// Show what applying states would change on hosts, as diffs; changes nothing
///
/// What can only be known once another resource was changed (a unit that a package brings) is not shown.
#[derive(Debug, Args)]
pub struct Plan {
    #[command(flatten)]
    states: StateArguments,
    /// Exit with code 2 when there are changes
    #[arg(long)]
    detailed_exitcode: bool,
    /// Output format
    #[arg(long, short, default_value = "table")]
    output: Format,
}

impl Plan {
    /// Runs it.
    ///
    /// # Errors
    /// For each host that cannot be compared with its states, one line.
    pub async fn run(&self, global: &Global) -> Result<ExitCode, Failure> {
        let work = self.states.read(global).await?;
        plan(&work, self.output, self.detailed_exitcode).await
    }
}

/// Compares and shows; `apply --dry-run` is the same.
///
/// # Errors
/// For each host that cannot be compared with its states, one line; what is known of the others was shown.
pub async fn plan(work: &StateWork, format: Format, detailed: bool) -> Result<ExitCode, Failure> {
    let outcomes = work
        .look(async |seen| {
            let plan = seen.looked.plan();
            let refusals = plan.refusals();
            if refusals.is_empty() { Ok(plan) } else { Err(HostError::Refused { refusals }) }
        })
        .await;
    show(&outcomes, format)?;
    let troubles = outcomes.iter().filter_map(|(name, outcome)| Some((name, outcome.as_ref().err()?)));
    if let Some(failure) = host_trouble::failure(troubles) {
        return Err(failure);
    }
    let changes = outcomes.iter().any(|(_, plan)| plan.as_ref().is_ok_and(|plan| !plan.works().is_empty()));
    Ok(if detailed && changes { ExitCode::from(Exit::Changes as u8) } else { ExitCode::SUCCESS })
}

/// One host, for programs.
#[derive(Debug, Serialize)]
struct Row {
    host: String,
    /// `planned`, or why it is not.
    outcome: &'static str,
    changes: Vec<ChangeRow>,
    unchanged: usize,
    /// Why nothing is known of it.
    errors: Vec<String>,
}

/// One resource that would change.
#[derive(Debug, Serialize)]
struct ChangeRow {
    resource: String,
    differences: Vec<Shown>,
}

fn changes(plan: &engine::plan::Plan) -> impl Iterator<Item = (&str, &[Difference])> {
    plan.verdicts.iter().filter_map(|(id, verdict)| match verdict {
        Verdict::Change(change) => Some((id.as_str(), change.differences.as_slice())),
        Verdict::NoChange { .. } | Verdict::Refuse { .. } => None,
    })
}

fn show(outcomes: &Outcomes<engine::plan::Plan>, format: Format) -> Result<(), Failure> {
    match format {
        Format::Json | Format::Yaml => document(format, &HostsDocument::new("Plan", &rows(outcomes))),
        Format::Name => print(
            &rows(outcomes)
                .into_iter()
                .filter(|row| !row.changes.is_empty())
                .map(|row| format!("{}\n", row.host))
                .collect::<String>(),
        ),
        Format::Table | Format::Wide => print(&text(outcomes, paint())),
    }
}

fn rows(outcomes: &Outcomes<engine::plan::Plan>) -> Vec<Row> {
    let row = |host: String, outcome: &Result<engine::plan::Plan, HostTrouble>| match outcome {
        Err(trouble) => Row {
            host,
            outcome: trouble.outcome().as_str(),
            changes: Vec::new(),
            unchanged: 0,
            errors: trouble.lines(),
        },
        Ok(plan) => Row {
            host,
            outcome: "planned",
            changes: changes(plan)
                .map(|(id, differences)| ChangeRow {
                    resource: id.to_owned(),
                    differences: diff::shown(id, differences),
                })
                .collect(),
            unchanged: plan.unchanged(),
            errors: Vec::new(),
        },
    };
    outcomes.iter().map(|(host, outcome)| row(host.to_string(), outcome)).collect()
}

fn text(outcomes: &Outcomes<engine::plan::Plan>, paint: Paint) -> String {
    let mut text = String::new();
    for (host, outcome) in outcomes {
        let plan = match outcome {
            Ok(plan) => plan,
            Err(trouble) => {
                text.push_str(&format!("{host}: {}\n", trouble.outcome()));
                continue;
            }
        };
        let count = changes(plan).count();
        text.push_str(&format!("{host}: {count} to change, {} unchanged\n", plan.unchanged()));
        for (id, differences) in changes(plan) {
            text.push_str(&diff::text(id, differences, paint));
        }
    }
    text
}
