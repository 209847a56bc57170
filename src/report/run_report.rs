//! The outcome of each host of a run, as text and for JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;

use super::diff::printable;
use super::document::rounded_seconds;
use super::plain::seconds;
use super::table::columns;
use crate::engine::host::HostError;
use crate::model::event::HostOutcome;
use crate::service::apply::HostRun;
use crate::service::host_failure::HostFailure;

/// How many of the last lines of a failed resource's output are shown.
const LAST_LINES: usize = 10;

/// One host, for JSON.
#[derive(Debug, Serialize)]
pub struct HostRow {
    /// Its name.
    pub host: String,
    outcome: HostOutcome,
    /// Ids of the resources that were changed.
    changed: Vec<String>,
    /// Resources that needed no change.
    unchanged: usize,
    /// Ids of the resources that were planned to change and were not changed.
    not_done: Vec<String>,
    /// `null` where the work did not begin.
    seconds: Option<f64>,
    errors: Vec<String>,
    /// The last lines of the failed resource's output.
    output: Vec<String>,
    #[serde(skip)]
    elapsed: Option<Duration>,
}

/// The row of a host.
pub fn row(host: &HostRun) -> HostRow {
    let HostRun { name, result, record } = host;
    let mut row = HostRow {
        host: name.to_string(),
        outcome: HostOutcome::Unchanged,
        changed: record.changed.clone(),
        unchanged: record.unchanged,
        not_done: Vec::new(),
        seconds: record.elapsed.map(rounded_seconds),
        errors: Vec::new(),
        output: Vec::new(),
        elapsed: record.elapsed,
    };
    match result {
        Ok(done) => {
            if !done.changed.is_empty() {
                row.outcome = HostOutcome::Changed;
            }
            row.changed.clone_from(&done.changed);
            row.unchanged = done.unchanged;
        }
        Err(failure) => {
            let done: BTreeSet<&String> = record.changed.iter().collect();
            row.not_done = record.planned.iter().filter(|id| !done.contains(id)).cloned().collect();
            row.outcome = failure.outcome();
            row.errors = failure.lines();
            if let HostFailure::Failed(HostError::Failed { output, .. }) = failure {
                row.output = last_lines(output);
            }
        }
    }
    row
}

fn last_lines(output: &str) -> Vec<String> {
    let lines: Vec<&str> = output.trim_end().lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].iter().map(|line| (*line).to_owned()).collect()
}

/// One line for each host, below it the output of its failed resource and what was not done; for several hosts also
/// their number by outcome.
pub fn text(rows: &[HostRow]) -> String {
    let lines = columns(&rows.iter().map(cells).collect::<Vec<_>>(), " ");
    let mut text = String::new();
    for (row, line) in rows.iter().zip(lines) {
        text.push_str(&format!("{line}\n"));
        for line in &row.output {
            text.push_str(&format!("    {}\n", printable(line)));
        }
        if !row.not_done.is_empty() {
            let ids: Vec<String> = row.not_done.iter().map(|id| printable(id)).collect();
            text.push_str(&format!("    not done: {}\n", ids.join(", ")));
        }
    }
    text.push_str(&totals(rows));
    text
}

fn cells(row: &HostRow) -> Vec<String> {
    let time = row.elapsed.map(|elapsed| format!(" {}", seconds(elapsed))).unwrap_or_default();
    let name = format!("{}:", row.host);
    let outcome = match row.outcome {
        HostOutcome::Unreachable | HostOutcome::NotBegun => {
            return vec![name, format!("{} {time}", row.outcome)];
        }
        HostOutcome::Changed | HostOutcome::Unchanged => time,
        outcome => format!("{outcome} {time}"),
    };
    vec![name, format!("changed={}", row.changed.len()), format!("unchanged={}", row.unchanged), outcome]
}

/// `12 hosts: 3 changed, 8 unchanged, 1 unreachable`; nothing for one host.
fn totals(rows: &[HostRow]) -> String {
    if rows.len() < 2 {
        return String::new();
    }
    let mut counts: BTreeMap<HostOutcome, usize> = BTreeMap::new();
    for row in rows {
        *counts.entry(row.outcome).or_default() += 1;
    }
    let counts: Vec<String> = counts.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
    format!("{} hosts: {}\n", rows.len(), counts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fleet::schedule::Halt;
    use crate::engine::host::Convergence;
    use crate::service::run_record::HostRecord;

    fn ids(ids: &[&str]) -> Vec<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    fn rows() -> Vec<HostRow> {
        let output = (0..20).map(|n| format!("line {n}\n")).collect();
        let failed = HostError::Failed { resources: ids(&["command:x"]), status: 1, output };
        let changed = Convergence { changed: ids(&["file:/a"]), unchanged: 12 };
        let halted = Halt::Failures { failed: 1, allowed: 0 };
        let record = HostRecord {
            planned: ids(&["file:/a", "command:x", "file:/b"]),
            changed: ids(&["file:/a"]),
            unchanged: 3,
            elapsed: Some(Duration::from_millis(1234)),
        };
        let none = HostRecord::default;
        [
            ("node-1", Err(HostFailure::Failed(failed)), record),
            ("node-10", Ok(changed), none()),
            ("node-2", Ok(Convergence { changed: Vec::new(), unchanged: 13 }), none()),
            ("node-3", Err(HostFailure::NotStarted(halted)), none()),
        ]
        .into_iter()
        .map(|(name, result, record)| row(&HostRun { name: name.parse().unwrap(), result, record }))
        .collect()
    }

    #[test]
    fn each_host_is_one_line_with_the_last_output_of_its_failed_resource() {
        insta::assert_snapshot!(text(&rows()), @"
        node-1:  changed=1 unchanged=3  failed  1.23 s
            line 10
            line 11
            line 12
            line 13
            line 14
            line 15
            line 16
            line 17
            line 18
            line 19
            not done: command:x, file:/b
        node-10: changed=1 unchanged=12
        node-2:  changed=0 unchanged=13
        node-3:  not started
        4 hosts: 1 unchanged, 1 changed, 1 failed, 1 not started
        ");
    }

    #[test]
    fn json_has_the_same_fields() {
        let row = serde_json::to_value(&rows()[0]).unwrap();
        assert_eq!(row["outcome"], "failed");
        assert_eq!(row["changed"], serde_json::json!(["file:/a"]));
        assert_eq!(row["not_done"], serde_json::json!(["command:x", "file:/b"]));
        assert_eq!(row["seconds"], 1.234);
        assert_eq!(row["output"].as_array().unwrap().len(), LAST_LINES);
        assert_eq!(row["errors"], serde_json::json!(["command:x failed with status 1: line 19"]));
    }
}
