//! What would change on hosts, as diffs and for JSON.

use serde::Serialize;

use super::diff::{self, Paint, Shown};
use crate::engine::plan::Plan;
use crate::resource::contract::change::{Difference, Verdict};
use crate::service::fleet_work::HostResults;
use crate::service::host_failure::HostFailure;

/// One host, for JSON.
#[derive(Debug, Serialize)]
pub struct PlanRow {
    /// Its name.
    pub host: String,
    /// `planned`, or why there is no plan.
    outcome: &'static str,
    changes: Vec<ChangeRow>,
    unchanged: usize,
    errors: Vec<String>,
}

/// One resource that would change.
#[derive(Debug, Serialize)]
struct ChangeRow {
    resource: String,
    differences: Vec<Shown>,
}

impl PlanRow {
    /// Whether the host would be changed.
    pub fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }
}

/// A row for each host.
pub fn rows(hosts: &HostResults<Plan>) -> Vec<PlanRow> {
    hosts.iter().map(|(host, result)| row(host.to_string(), result)).collect()
}

fn row(host: String, result: &Result<Plan, HostFailure>) -> PlanRow {
    match result {
        Err(failure) => PlanRow {
            host,
            outcome: failure.outcome().as_str(),
            changes: Vec::new(),
            unchanged: 0,
            errors: failure.lines(),
        },
        Ok(plan) => PlanRow {
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
    }
}

/// One line for each host, and the diffs below it.
pub fn text(hosts: &HostResults<Plan>, paint: Paint) -> String {
    let mut text = String::new();
    for (host, result) in hosts {
        let plan = match result {
            Ok(plan) => plan,
            Err(failure) => {
                text.push_str(&format!("{host}: {}\n", failure.outcome()));
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

fn changes(plan: &Plan) -> impl Iterator<Item = (&str, &[Difference])> {
    plan.verdicts.iter().filter_map(|(id, verdict)| match verdict {
        Verdict::Change(change) => Some((id.as_str(), change.differences.as_slice())),
        Verdict::NoChange { .. } | Verdict::Refuse { .. } => None,
    })
}
