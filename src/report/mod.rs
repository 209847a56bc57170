//! Presentation of events and reports: live on a terminal, plain lines elsewhere, tables, diffs, JSON. Progress is
//! written to standard error. Reports become strings and documents here; the command line writes them to standard
//! output.

pub mod bundle_progress;
pub mod diff;
pub mod document;
pub mod etcd_table;
pub mod facts_table;
pub mod host_differences;
pub mod host_key_table;
pub mod host_table;
pub mod live;
pub mod machine_table;
pub mod membership_table;
pub mod mirror_table;
pub mod node_table;
pub mod obsolete_images;
pub mod operation_report;
pub mod operation_table;
pub mod operations;
pub mod plain;
pub mod plan_report;
pub mod preview;
pub mod recovery_plan;
pub mod rendered;
pub mod run_report;
pub mod screen;
pub mod snapshot_table;
pub mod table;

use std::io::{IsTerminal, Write};

use jiff::Timestamp;
use serde::Serialize;

use self::plain::Detail;
use crate::model::event::Event;

/// How progress is written to standard error.
#[derive(Debug)]
pub enum Reporter {
    /// Lines at the bottom of a terminal that change, and one that stays for each thing that ended.
    Live(live::Live),
    /// One line for each thing that ended.
    Plain(Detail),
    /// One JSON object a line: the event, and `time` from this clock (RFC 3339).
    Json(fn() -> Timestamp),
    /// Nothing.
    Silent,
}

impl Reporter {
    /// Live where standard error is a terminal, else plain lines.
    pub fn for_people(detail: Detail) -> Self {
        if std::io::stderr().is_terminal() { Self::Live(live::Live::new()) } else { Self::Plain(detail) }
    }

    /// Writes one event.
    pub fn event(&self, event: &Event) {
        match self {
            Self::Live(live) => live.event(event),
            Self::Plain(detail) => {
                if let Some(line) = plain::line(event, *detail) {
                    to_stderr(&line);
                }
            }
            Self::Json(clock) => {
                if let Ok(line) = serde_json::to_string(&Stamped { time: clock(), event }) {
                    to_stderr(&line);
                }
            }
            Self::Silent => {}
        }
    }
}

/// An event in JSON.
#[derive(Debug, Serialize)]
struct Stamped<'a> {
    time: Timestamp,
    #[serde(flatten)]
    event: &'a Event,
}

/// A closed standard error is no reason to stop.
pub(crate) fn to_stderr(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::event::HostOutcome;

    #[test]
    fn json_events_have_time_host_and_event() {
        let event = Event::HostEnded {
            host: "node-1".parse().unwrap(),
            outcome: HostOutcome::NotBegun,
            changed: 2,
            elapsed: Duration::from_micros(1_234_567),
        };
        let stamped = Stamped { time: Timestamp::from_second(1_700_000_000).unwrap(), event: &event };
        assert_eq!(
            serde_json::to_string(&stamped).unwrap(),
            r#"{"time":"2023-11-14T22:13:20Z","event":"host-ended","host":"node-1","outcome":"not-begun","changed":2,"elapsed":1.235}"#
        );
    }
}
