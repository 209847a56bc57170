//! Records of operations, as a table and one by one.

use jiff::Timestamp;
use serde::Serialize;

use super::diff::printable;
use super::document::rounded_seconds;
use super::plain::{self, Detail, seconds};
use super::table::table;
use crate::model::event::Event;
use crate::model::operation_record::{OperationRecord, OperationStatus};
use crate::model::operation_summary::OperationSummary;
use crate::model::recorded_phase::{RecordedPhase, recorded_phases};
use crate::model::resumption::ResumedBy;

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

/// A row for each operation.
pub fn rows(operations: &[OperationSummary]) -> Vec<OperationListRow> {
    operations.iter().map(row).collect()
}

fn row(operation: &OperationSummary) -> OperationListRow {
    OperationListRow {
        id: operation.id.clone(),
        started: operation.started,
        seconds: operation.took().map(rounded_seconds),
        user: operation.user.clone(),
        status: operation.status,
        command: operation.command.clone(),
        exit: operation.exit,
        errors: operation.errors.clone(),
        hints: operation.hints.clone(),
    }
}

/// What is shown of a record.
pub fn summary(record: &OperationRecord) -> OperationSummary {
    let (begun, ended) = (&record.begun, record.ended.as_ref());
    OperationSummary {
        id: begun.id.clone(),
        started: begun.time,
        ended: ended.map(|ended| ended.time),
        user: begun.user.clone(),
        command: begun.command_line(),
        status: record.status(),
        exit: ended.map(|ended| ended.exit),
        plan: record.events.iter().flat_map(|(_, event)| planned(event)).cloned().collect(),
        phases: recorded_phases(record.events.iter().map(|(_, event)| event)),
        errors: ended.map(|ended| ended.errors.clone()).unwrap_or_default(),
        hints: ended.map(|ended| ended.hints.clone()).unwrap_or_default(),
        log: record.events.iter().filter_map(|(time, event)| log_line(*time, event)).collect(),
    }
}

fn planned(event: &Event) -> &[String] {
    match event {
        Event::PlanMade { lines } => lines,
        _ => &[],
    }
}

/// The list.
pub fn list(operations: &[OperationSummary]) -> String {
    let cells: Vec<[String; 6]> = operations
        .iter()
        .map(|operation| {
            let took = operation.took().map_or_else(|| "-".to_owned(), seconds);
            [
                operation.id.clone(),
                format!("{:.0}", operation.started),
                took,
                operation.user.clone(),
                operation.status.to_string(),
                operation.command.clone(),
            ]
        })
        .collect();
    table(&HEADER, &cells)
}

/// One operation: what is needed to know what to do next, then its log.
pub fn text(operation: &OperationSummary) -> String {
    let mut text = String::new();
    let mut field = |name: &str, value: &str| {
        let name = format!("{name}:");
        text.push_str(&format!("{name:<9} {}\n", printable(value)));
    };
    field("Command", &operation.command);
    field("Id", &operation.id);
    field("User", &operation.user);
    field("Started", &format!("{:.0}", operation.started));
    match (operation.ended, operation.took()) {
        (Some(ended), Some(took)) => field("Ended", &format!("{ended:.0}, after {}", seconds(took))),
        _ => field("Ended", "-"),
    }
    let exit = operation.exit.filter(|exit| *exit > 0);
    let exit = exit.map_or_else(String::new, |exit| format!(", exit code {exit}"));
    field("Status", &format!("{}{exit}", operation.status));
    text.push_str(&section("Plan", operation.plan.iter().map(|line| printable(line))));
    text.push_str(&phases(&operation.phases));
    for (title, lines) in [("Errors", &operation.errors), ("Hints", &operation.hints)] {
        text.push_str(&section(title, lines.iter().map(|line| printable(line))));
    }
    if operation.status == OperationStatus::Killed {
        let hint = match ResumedBy::of(operation.command.split_whitespace()) {
            ResumedBy::SameCommand => format!("run `{}` again; it resumes", printable(&operation.command)),
            resumed => resumed.instruction(),
        };
        text.push_str(&section("Hints", std::iter::once(hint)));
    }
    text.push_str(&section("Log", operation.log.iter().map(|line| printable(line))));
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

/// A section for each host.
fn phases(phases: &[RecordedPhase]) -> String {
    let mut text = String::new();
    for phases in phases.chunk_by(|one, other| one.host == other.host) {
        let width = phases.iter().map(|phase| phase.phase.len()).max().unwrap_or(0);
        let lines = phases.iter().map(|RecordedPhase { phase, outcome, took, cause, .. }| {
            let gap = if cause.is_empty() { "" } else { "  " };
            format!("{phase:<width$}  {:>9}  {}{gap}{}", seconds(*took), outcome.as_str(), printable(cause))
        });
        let host = phases.first().map(|phase| phase.host.to_string()).unwrap_or_default();
        text.push_str(&section(&host, lines));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::operation_record::{OperationBegun, OperationEnded};
    use crate::model::resumption::PlanMaker;

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
                (at(0), Event::PlanMade { lines: vec!["node-1: etcd, master".to_owned()] }),
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
        insta::assert_snapshot!(text(&summary(&record())), @"
        Command:  metalform deploy-node node-1
        Id:       20270115T080000Z-4711
        User:     ada
        Started:  2027-01-15T08:00:00Z
        Ended:    2027-01-15T08:00:21Z, after 21.00 s
        Status:   failed, exit code 4

        Plan:
          node-1: etcd, master

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
        insta::assert_snapshot!(list(&[summary(&record())]), @"
        ID                      STARTED                DURATION   USER   STATUS   COMMAND
        20270115T080000Z-4711   2027-01-15T08:00:00Z   21.00 s    ada    failed   metalform deploy-node node-1
        ");
    }

    #[test]
    fn a_killed_operation_names_the_command_that_resumes_it() {
        let killed = OperationRecord { ended: None, ..record() };
        assert!(text(&summary(&killed)).contains("run `metalform deploy-node node-1` again; it resumes"));
        let running = OperationRecord { runs: true, ..killed.clone() };
        assert!(!text(&summary(&running)).contains("again"));
        let command = |words: &str| {
            let command = words.split(' ').map(str::to_owned).collect();
            let begun = OperationBegun { command, ..killed.begun.clone() };
            text(&summary(&OperationRecord { begun, ..killed.clone() }))
        };
        for (words, resumed) in [
            ("metalform etcd restore a.db --yes-i-have-read-the-plan", ResumedBy::Restoration),
            ("metalform etcd recover --yes-i-have-read-the-plan", ResumedBy::Recovery),
            ("metalform expand --plan p", ResumedBy::NewPlan(PlanMaker::Expand)),
        ] {
            let shown = command(words);
            assert!(shown.contains(&resumed.instruction()), "{shown}");
            assert!(!shown.contains("again; it resumes"), "{shown}");
        }
    }
}
