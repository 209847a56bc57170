//! Readers of events: live on a terminal, plain lines elsewhere, JSON for programs. Progress goes to standard
//! error; what a command was asked for goes to standard output, and is not made here.

pub mod diff;
pub mod live;
pub mod plain;

use std::io::{IsTerminal, Write};

use crate::model::event::Event;

/// How progress is told.
#[derive(Debug)]
pub enum Reporter {
    /// A line at the bottom that changes, and one that stays for each phase.
    Live(live::Live),
    /// One line for each thing that ends.
    Plain,
    /// One JSON object a line.
    Json,
    /// Nothing.
    Silent,
}

impl Reporter {
    /// Live on a terminal, else plain lines.
    pub fn for_people() -> Self {
        if std::io::stderr().is_terminal() { Self::Live(live::Live::new()) } else { Self::Plain }
    }

    /// Tells of one event.
    pub fn event(&self, event: &Event) {
        match self {
            Self::Live(live) => live.event(event),
            Self::Plain => {
                if let Some(line) = plain::line(event) {
                    to_stderr(&line);
                }
            }
            Self::Json => {
                if let Ok(line) = serde_json::to_string(event) {
                    to_stderr(&line);
                }
            }
            Self::Silent => {}
        }
    }
}

/// Progress that nobody can read any more is no reason to stop.
pub(crate) fn to_stderr(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
