//! The record of an operation: who ran which command when, what happened, how it ended. It is for people; no run reads it.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::event::Event;
use super::name::HostName;

/// A line of a record's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RecordLine {
    /// The first.
    Began(OperationBegun),
    /// Something happened.
    Happened {
        /// When.
        time: Timestamp,
        /// What.
        event: Event,
    },
    /// The last, unless the process was killed.
    Ended(OperationEnded),
}

/// The beginning of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperationBegun {
    /// `20261123T021530Z-4711`: its time and its process.
    pub id: String,
    /// When.
    pub time: Timestamp,
    /// The words of the command line.
    pub command: Vec<String>,
    /// Who: the login name behind sudo(8), or the user of the process.
    pub user: String,
    /// The process.
    pub process: u32,
    /// The version of metalform.
    pub version: String,
}

/// The end of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperationEnded {
    /// When.
    pub time: Timestamp,
    /// The exit code of the command.
    pub exit: u8,
    /// One line for each thing that failed.
    pub errors: Vec<String>,
    /// Instructions, in this order.
    pub hints: Vec<String>,
}

/// How far an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OperationStatus {
    /// Its process runs.
    Running,
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed,
    /// It was interrupted.
    Interrupted,
    /// Its process ended without a word: it was killed, or the machine lost power.
    Killed,
}

/// The exit code of a command that was interrupted.
const INTERRUPTED: u8 = 130;
/// The exit code of a dry run with changes.
const CHANGES: u8 = 2;

impl OperationStatus {
    /// Of an operation with this end; `runs` is whether its process does.
    pub fn of(ended: Option<&OperationEnded>, runs: bool) -> Self {
        match ended.map(|ended| ended.exit) {
            Some(0 | CHANGES) => Self::Succeeded,
            Some(INTERRUPTED) => Self::Interrupted,
            Some(_) => Self::Failed,
            None if runs => Self::Running,
            None => Self::Killed,
        }
    }

    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Running, Self::Succeeded, Self::Failed, Self::Interrupted, Self::Killed];

    /// In tables, and as the value of a label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Killed => "killed",
        }
    }
}

impl OperationBegun {
    /// `metalform deploy-node node-1`.
    pub fn command_line(&self) -> String {
        self.command.join(" ")
    }
}

/// One operation, as far as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationRecord {
    /// Its beginning.
    pub begun: OperationBegun,
    /// What happened, in order.
    pub events: Vec<(Timestamp, Event)>,
    /// Its end.
    pub ended: Option<OperationEnded>,
    /// Whether its process runs.
    pub runs: bool,
}

impl OperationRecord {
    /// How far it is.
    pub fn status(&self) -> OperationStatus {
        OperationStatus::of(self.ended.as_ref(), self.runs)
    }

    /// The hosts that it was about, in the order of their names.
    pub fn hosts(&self) -> Vec<HostName> {
        let mut hosts: Vec<HostName> =
            self.events.iter().filter_map(|(_, event)| event.host().cloned()).collect();
        hosts.sort();
        hosts.dedup();
        hosts
    }
}

impl fmt::Display for OperationStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
