//! `metalform plan`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use super::Global;
use super::conduct::Conduct;
use super::failure::{Exit, Failure};
use super::host_trouble::{self, HostTrouble, Outcomes};
use super::output::{Format, HostsDocument, document, paint, print};
use super::plan_file::{self, PlanFile};
use super::states::{Making, SeenHost, StateArguments, StateWork};
use crate::engine;
use crate::engine::host::HostError;
use crate::engine::saved_plan::SavedHost;
use crate::engine::saved_plan::key::Key;
use crate::engine::saved_plan::planned::Digested;
use crate::model::event::HostOutcome;
use crate::model::name::HostName;
use crate::report::diff::{self, Paint, Shown};
use crate::resource::contract::change::{Difference, Verdict};

/// Show what applying states would change on hosts, as diffs; changes nothing
///
/// What can only be known once another resource was changed (a unit that a package brings) is not shown.
#[derive(Debug, Args)]
pub struct Plan {
    /// Which states, on which hosts.
    #[command(flatten)]
    pub states: StateArguments,
    /// Exit with code 2 when there are changes
    #[arg(long)]
    detailed_exitcode: bool,
    /// Keep the plan in this file, for `apply --plan FILE`; it holds no content, and only its owner can read it
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
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
        plan(&work, self.output, self.detailed_exitcode, self.out.as_deref()).await
    }
}

/// Compares and shows; `apply --dry-run` is the same.
///
/// # Errors
/// For each host that cannot be compared with its states, one line; what is known of the others was shown.
pub async fn plan(
    work: &StateWork,
    format: Format,
    detailed: bool,
    out: Option<&Path>,
) -> Result<ExitCode, Failure> {
    let salt = plan_file::salt();
    let key = Key::new(&salt);
    let conduct = Conduct::looking(work.limit);
    let both = planned(work, &conduct, &key, out.is_some()).await;
    let mut saved = BTreeMap::new();
    let mut outcomes: Outcomes<engine::plan::Plan> = Vec::new();
    for (host, outcome) in both {
        let outcome = outcome.map(|(plan, kept)| {
            saved.extend(kept.map(|kept| (host.clone(), kept)));
            plan
        });
        outcomes.push((host, outcome));
    }
    show(&outcomes, format)?;
    if let Some(path) = out.filter(|_| !saved.is_empty()) {
        PlanFile::new(salt, work.now, work.hosts(), saved)?.write(path)?;
    }
    let troubles = outcomes.iter().filter_map(|(name, outcome)| Some((name, outcome.as_ref().err()?)));
    if let Some(failure) = host_trouble::failure(troubles) {
        return Err(failure);
    }
    let changes = outcomes.iter().any(|(_, plan)| plan.as_ref().is_ok_and(|plan| !plan.works().is_empty()));
    Ok(if detailed && changes { ExitCode::from(Exit::Changes as u8) } else { ExitCode::SUCCESS })
}

/// Compares every host with its states, and where that is asked takes down what would be done. A plan that
/// refuses something is an error of its host.
pub async fn planned(
    work: &StateWork,
    conduct: &Conduct<'_>,
    key: &Key,
    save: bool,
) -> Outcomes<(engine::plan::Plan, Option<SavedHost>)> {
    let make = |_: &HostName, compiled| Digested::new(compiled, key, |compiled| work.desired(compiled));
    let on_one = async |seen: SeenHost<'_, Digested>| {
        let plan = seen.looked.plan();
        let refusals = plan.refusals();
        if !refusals.is_empty() {
            return Err(HostError::Refused { refusals });
        }
        let facts = seen.looked.facts.as_ref().filter(|_| save);
        let saved =
            facts.map(|facts| SavedHost::of(&plan, &seen.looked.desired.digests, &facts.machine_id, key));
        Ok((plan, saved))
    };
    work.each(conduct, Making { with_facts: save, make }, on_one, |_| (HostOutcome::Unchanged, 0)).await
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
                    differences: diff::shown(differences),
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
