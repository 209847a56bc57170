//! What became of each host of a run, told at its end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;

use super::host_trouble::HostTrouble;
use crate::engine::host::{Convergence, HostError};
use crate::model::event::{Event, HostOutcome};
use crate::model::name::HostName;
use crate::report::diff::printable;
use crate::report::plain::seconds;

/// Lines of a failed resource's output that are shown.
const LAST_LINES: usize = 10;

/// What was seen of one host, whether or not it came to its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// Resources to change, in order.
    planned: Vec<String>,
    /// Resources that were changed, in order.
    changed: Vec<String>,
    unchanged: usize,
    elapsed: Option<Duration>,
}

/// What was seen of all.
#[derive(Debug, Default)]
pub struct Records(BTreeMap<HostName, Record>);

impl Records {
    /// Takes in one event.
    pub fn take_in(&mut self, event: &Event) {
        let Some(host) = event.host() else { return };
        let record = self.0.entry(host.clone()).or_default();
        match event {
            Event::Planned { changes, unchanged, .. } => {
                record.planned.extend(changes.iter().cloned());
                // What was changed before is what it should be now, and not something that needed nothing.
                record.unchanged = unchanged.saturating_sub(record.changed.len());
            }
            Event::ResourceDone { resource, .. } => record.changed.push(resource.clone()),
            Event::HostEnded { elapsed, .. } => record.elapsed = Some(*elapsed),
            _ => {}
        }
    }

    /// The same event, with how many resources were changed on a host that did not come to its end.
    pub fn counted(&self, event: Event) -> Event {
        match event {
            Event::HostEnded { host, outcome, elapsed, .. } => {
                let changed = self.of(&host).changed.len();
                Event::HostEnded { host, outcome, changed, elapsed }
            }
            other => other,
        }
    }

    /// Of one host.
    pub fn of(&self, host: &HostName) -> Record {
        self.0.get(host).cloned().unwrap_or_default()
    }
}

/// One host, for programs.
#[derive(Debug, Serialize)]
pub struct Row {
    /// Its name.
    pub host: String,
    outcome: HostOutcome,
    /// Ids of the resources that were changed.
    changed: Vec<String>,
    /// How many needed nothing.
    unchanged: usize,
    /// Ids of the resources that were to be changed, and were not.
    not_done: Vec<String>,
    /// How long it took; `null` where nothing was begun.
    seconds: Option<f64>,
    errors: Vec<String>,
    /// The last of what the failing resource printed.
    output: Vec<String>,
    #[serde(skip)]
    elapsed: Option<Duration>,
}

/// What is told of a host.
pub fn row(host: &HostName, outcome: &Result<Convergence, HostTrouble>, record: &Record) -> Row {
    let done: BTreeSet<&String> = record.changed.iter().collect();
    let not_done = record.planned.iter().filter(|id| !done.contains(id)).cloned().collect();
    let mut row = Row {
        host: host.to_string(),
        outcome: HostOutcome::Unchanged,
        changed: record.changed.clone(),
        unchanged: record.unchanged,
        not_done,
        seconds: record.elapsed.map(|elapsed| (elapsed.as_secs_f64() * 1000.0).round() / 1000.0),
        errors: Vec::new(),
        output: Vec::new(),
        elapsed: record.elapsed,
    };
    match outcome {
        Ok(done) => {
            if !done.changed.is_empty() {
                row.outcome = HostOutcome::Changed;
            }
            row.changed.clone_from(&done.changed);
            row.unchanged = done.unchanged;
            row.not_done = Vec::new();
        }
        Err(trouble) => {
            row.outcome = trouble.outcome();
            row.errors = trouble.lines();
            if let HostTrouble::Failed(error) = trouble {
                row.output = last_lines(error);
            }
        }
    }
    row
}

fn last_lines(error: &HostError) -> Vec<String> {
    let HostError::Failed { output, .. } = error else { return Vec::new() };
    let lines: Vec<&str> = output.trim_end().lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].iter().map(|line| (*line).to_owned()).collect()
}

/// One line a host, below it what its failing resource printed and what was not done; then how many hosts
/// ended in which way, where there are several.
pub fn text(rows: &[Row]) -> String {
    let names = rows.iter().map(|row| row.host.len() + 1).max().unwrap_or(0);
    let counts =
        |row: &Row| [format!("changed={}", row.changed.len()), format!("unchanged={}", row.unchanged)];
    let width = |column: usize| rows.iter().map(|row| counts(row)[column].len()).max().unwrap_or(0);
    let (changed_width, unchanged_width) = (width(0), width(1));
    let mut text = String::new();
    for row in rows {
        let name = format!("{}:", row.host);
        let time = row.elapsed.map(|elapsed| format!("  {}", seconds(elapsed))).unwrap_or_default();
        let line = match row.outcome {
            HostOutcome::Unreachable | HostOutcome::NotBegun => {
                format!("{name:<names$} {}{time}", row.outcome)
            }
            outcome => {
                let [changed, unchanged] = counts(row);
                let well = matches!(outcome, HostOutcome::Changed | HostOutcome::Unchanged);
                let outcome = if well { String::new() } else { format!(" {outcome}") };
                format!(
                    "{name:<names$} {changed:<changed_width$} {unchanged:<unchanged_width$}{outcome}{time}"
                )
            }
        };
        text.push_str(line.trim_end());
        text.push('\n');
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

/// `12 hosts: 3 changed, 8 unchanged, 1 unreachable`; nothing for one.
fn totals(rows: &[Row]) -> String {
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

    fn name(text: &str) -> HostName {
        text.parse().unwrap()
    }

    fn ids(ids: &[&str]) -> Vec<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    fn records() -> Records {
        let mut records = Records::default();
        let host = || name("node-1");
        for event in [
            Event::RunBegun { hosts: 4 },
            Event::Planned { host: host(), changes: ids(&["file:/a", "command:x", "file:/b"]), unchanged: 3 },
            Event::ResourceDone { host: host(), resource: "file:/a".to_owned() },
            Event::HostEnded {
                host: host(),
                outcome: HostOutcome::Failed,
                changed: 1,
                elapsed: Duration::from_millis(1234),
            },
        ] {
            records.take_in(&event);
        }
        records
    }

    fn rows() -> Vec<Row> {
        let output = (0..20).map(|n| format!("line {n}\n")).collect();
        let failed = HostError::Failed { resources: ids(&["command:x"]), status: 1, output };
        let well = Convergence { changed: ids(&["file:/a"]), unchanged: 12 };
        let halted = Halt::Failures { failed: 1, allowed: 0 };
        let outcomes = [
            (name("node-1"), Err(HostTrouble::Failed(failed))),
            (name("node-10"), Ok(well)),
            (name("node-2"), Ok(Convergence { changed: Vec::new(), unchanged: 13 })),
            (name("node-3"), Err(HostTrouble::NotBegun(halted))),
        ];
        let records = records();
        outcomes.iter().map(|(host, outcome)| row(host, outcome, &records.of(host))).collect()
    }

    #[test]
    fn each_host_is_one_line_and_what_failed_shows_the_end_of_what_it_printed() {
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
        node-3:  not begun
        4 hosts: 1 unchanged, 1 changed, 1 failed, 1 not begun
        ");
    }

    #[test]
    fn programs_get_the_same() {
        let row = serde_json::to_value(&rows()[0]).unwrap();
        assert_eq!(row["outcome"], "failed");
        assert_eq!(row["changed"], serde_json::json!(["file:/a"]));
        assert_eq!(row["not_done"], serde_json::json!(["command:x", "file:/b"]));
        assert_eq!(row["seconds"], 1.234);
        assert_eq!(row["output"].as_array().unwrap().len(), LAST_LINES);
        assert_eq!(row["errors"], serde_json::json!(["command:x failed with status 1: line 19"]));
    }

    #[test]
    fn a_second_pass_adds_to_the_first() {
        let mut records = records();
        let host = name("node-1");
        records.take_in(&Event::Planned { host: host.clone(), changes: ids(&["service:s"]), unchanged: 5 });
        let record = records.of(&host);
        assert_eq!(record.planned, ids(&["file:/a", "command:x", "file:/b", "service:s"]));
        assert_eq!(record.unchanged, 4);
    }
}
