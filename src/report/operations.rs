//! Records of operations, as a table and one by one.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::diff::printable;
use super::document::rounded_seconds;
use super::plain::{self, Detail, seconds};
use super::table::table;
use crate::model::event::Event;
use crate::model::operation_record::{OperationRecord, OperationStatus};

/// Headings of the list.
const HEADER: [&str; 6] = ["ID", "STARTED", "DURATION", "USER", "STATUS", "COMMAND"];

/// One operation in a list, for JSON.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperationListRow {
    id: String,
    started: Timestamp,
    /// `null` while it runs, and where it was killed.
    seconds: Option<f64>,
    user: String,
    status: OperationStatus,
    command: String,
    exit: Option<u8>,
    errors: Vec<String>,
    hints: Vec<String>,
}

/// A row for each record.
pub fn rows(records: &[OperationRecord]) -> Vec<OperationListRow> {
    records.iter().map(row).collect()
}

fn row(record: &OperationRecord) -> OperationListRow {
    let ended = record.ended.as_ref();
    OperationListRow {
        id: record.begun.id.clone(),
        started: record.begun.time,
        seconds: duration(record).map(rounded_seconds),
        user: record.begun.user.clone(),
        status: record.status(),
        command: record.begun.command_line(),
        exit: ended.map(|ended| ended.exit),
        errors: ended.map(|ended| ended.errors.clone()).unwrap_or_default(),
        hints: ended.map(|ended| ended.hints.clone()).unwrap_or_default(),
    }
}

fn duration(record: &OperationRecord) -> Option<Duration> {
    let ended = record.ended.as_ref()?;
    ended.time.duration_since(record.begun.time).try_into().ok()
}

/// The list.
pub fn list(records: &[OperationRecord]) -> String {
    let cells: Vec<[String; 6]> = records
        .iter()
        .map(|record| {
            let begun = &record.begun;
            let took = duration(record).map_or_else(|| "-".to_owned(), seconds);
            [
                begun.id.clone(),
                format!("{:.0}", begun.time),
                took,
                printable(&begun.user),
                record.status().to_string(),
                printable(&begun.command_line()),
            ]
        })
        .collect();
    table(&HEADER, &cells)
}

/// One operation: what is needed to know what to do next, then its log.
pub fn text(record: &OperationRecord) -> String {
    let begun = &record.begun;
    let mut text = String::new();
    let mut field = |name: &str, value: &str| {
        let name = format!("{name}:");
        text.push_str(&format!("{name:<9} {}\n", printable(value)));
    };
    field("Command", &begun.command_line());
    field("Id", &begun.id);
    field("User", &begun.user);
    field("Started", &format!("{:.0}", begun.time));
    match (&record.ended, duration(record)) {
        (Some(ended), Some(took)) => field("Ended", &format!("{:.0}, after {}", ended.time, seconds(took))),
        _ => field("Ended", "-"),
    }
    let exit = record.ended.as_ref().filter(|ended| ended.exit > 0);
    let exit = exit.map_or_else(String::new, |ended| format!(", exit code {}", ended.exit));
    field("Status", &format!("{}{exit}", record.status()));
    text.push_str(&phases(record));
    let ended = record.ended.iter();
    for (title, lines) in ended.flat_map(|ended| [("Errors", &ended.errors), ("Hints", &ended.hints)]) {
        text.push_str(&section(title, lines.iter().map(|line| printable(line))));
    }
    if record.status() == OperationStatus::Killed {
        let hint = format!("run `{}` again; it resumes", begun.command_line());
        text.push_str(&section("Hints", std::iter::once(hint)));
    }
    text.push_str(&section("Log", record.events.iter().filter_map(|(time, event)| log_line(*time, event))));
    text
}

fn section(title: &str, lines: impl Iterator<Item = String>) -> String {
    let lines: String = lines.map(|line| format!("  {line}\n")).collect();
    if lines.is_empty() { lines } else { format!("\n{title}:\n{lines}") }
}

/// A line of the log; `None` for what people do not see of a run either.
pub fn log_line(time: Timestamp, event: &Event) -> Option<String> {
    let line = plain::line(event, Detail::Resources)?;
    Some(format!("{} {line}", time.strftime("%H:%M:%S")))
}

/// What became of one phase.
struct PhaseOutcome {
    took: Duration,
    outcome: &'static str,
    /// What was waited for last.
    waited: String,
}

/// The phases of each host, in the order in which they began.
fn phases(record: &OperationRecord) -> String {
    let mut found: BTreeMap<String, Vec<(String, PhaseOutcome)>> = BTreeMap::new();
    for (_, event) in &record.events {
        match event {
            Event::PhaseBegun { host, phase } => {
                let new =
                    PhaseOutcome { took: Duration::ZERO, outcome: "not completed", waited: String::new() };
                found.entry(host.to_string()).or_default().push((phase.clone(), new));
            }
            Event::PhaseEnded { host, phase, elapsed, holds } => {
                let phases = found.entry(host.to_string()).or_default();
                if let Some((_, known)) = phases.iter_mut().rfind(|(title, _)| title == phase) {
                    (known.took, known.outcome) = (*elapsed, if *holds { "holds" } else { "FAILED" });
                }
            }
            Event::Waiting { host, condition, last_seen, .. } => {
                let phases = found.entry(host.to_string()).or_default();
                if let Some((_, last)) =
                    phases.iter_mut().rfind(|(_, phase)| phase.outcome == "not completed")
                {
                    last.waited = format!("waited for {condition}: {last_seen}");
                }
            }
            _ => {}
        }
    }
    let mut text = String::new();
    for (host, phases) in found {
        let width = phases.iter().map(|(title, _)| title.len()).max().unwrap_or(0);
        let lines = phases.into_iter().map(|(title, PhaseOutcome { took, outcome, waited })| {
            let waited =
                if outcome == "holds" || waited.is_empty() { String::new() } else { format!("  {waited}") };
            format!("{title:<width$}  {:>9}  {outcome}{}", seconds(took), printable(&waited))
        });
        text.push_str(&section(&host, lines));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::operation_record::{OperationBegun, OperationEnded};

    fn record() -> OperationRecord {
        let at = |second: i64| Timestamp::from_second(1_800_000_000 + second).unwrap();
        let host = || "node-1".parse().unwrap();
        let ended = |phase: &str, seconds, holds| Event::PhaseEnded {
            host: host(),
            phase: phase.to_owned(),
            elapsed: Duration::from_secs(seconds),
            holds,
        };
        let begun = |phase: &str| Event::PhaseBegun { host: host(), phase: phase.to_owned() };
        let waiting = Event::Waiting {
            host: host(),
            condition: "the kubelet of node-1 to register".to_owned(),
            last_seen: "kubelet.service is failed".to_owned(),
            elapsed: Duration::from_secs(12),
        };
        OperationRecord {
            begun: OperationBegun {
                id: "20270115T080000Z-4711".to_owned(),
                time: at(0),
                command: ["metalform", "deploy-node", "node-1"].map(str::to_owned).into(),
                user: "ada".to_owned(),
                process: 4711,
                version: "1.0.0".to_owned(),
            },
            events: vec![
                (at(0), begun("Base system")),
                (at(1), Event::Acted { host: host(), action: "apply base system".to_owned() }),
                (at(9), ended("Base system", 9, true)),
                (at(9), begun("Node joined")),
                (at(10), waiting),
                (at(21), ended("Node joined", 12, false)),
            ],
            ended: Some(OperationEnded {
                time: at(21),
                exit: 4,
                errors: vec!["node-1: Node joined: gave up".to_owned()],
                hints: vec!["fix this, then run the same command again; it resumes".to_owned()],
            }),
            runs: false,
        }
    }

    #[test]
    fn a_failed_operation_alone_shows_what_to_do_next() {
        insta::assert_snapshot!(text(&record()), @"
        Command:  metalform deploy-node node-1
        Id:       20270115T080000Z-4711
        User:     ada
        Started:  2027-01-15T08:00:00Z
        Ended:    2027-01-15T08:00:21Z, after 21.00 s
        Status:   failed, exit code 4

        node-1:
          Base system     9.00 s  holds
          Node joined    12.00 s  FAILED  waited for the kubelet of node-1 to register: kubelet.service is failed

        Errors:
          node-1: Node joined: gave up

        Hints:
          fix this, then run the same command again; it resumes

        Log:
          08:00:01 node-1:   apply base system
          08:00:09 node-1: Base system                9.00 s
          08:00:10 node-1:   waiting for the kubelet of node-1 to register (12.00 s): kubelet.service is failed
          08:00:21 node-1: Node joined               12.00 s  FAILED
        ");
        insta::assert_snapshot!(list(&[record()]), @"
        ID                      STARTED                DURATION   USER   STATUS   COMMAND
        20270115T080000Z-4711   2027-01-15T08:00:00Z   21.00 s    ada    failed   metalform deploy-node node-1
        ");
    }

    #[test]
    fn a_killed_operation_names_the_command_that_resumes_it() {
        let killed = OperationRecord { ended: None, ..record() };
        assert!(text(&killed).contains("run `metalform deploy-node node-1` again; it resumes"));
        let running = OperationRecord { runs: true, ..killed };
        assert!(!text(&running).contains("again"));
    }
}
