//! The end of a command that failed: its exit code, its errors and its hints. The only place where errors are printed.

use std::io::Write;

use jiff::Timestamp;
use serde_json::json;

use crate::model::error_chain::error_chain;
use crate::report::diff::printable;
use crate::service::command_error::{CommandError, ErrorClass};

/// The end of a command that failed.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// One line for each thing that failed.
    pub errors: Vec<String>,
    /// Instructions, in this order.
    pub hints: Vec<String>,
}

/// Exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Usage or configuration.
    Configuration = 1,
    /// `plan` and `--dry-run` with `--detailed-exitcode`: there are changes.
    Changes = 2,
    /// An SSH connection failed.
    Ssh = 3,
    /// A host failed, or an artefact is damaged.
    Host = 4,
    /// etcd.
    Etcd = 5,
    /// The Kubernetes API.
    Api = 6,
    /// Refused for safety.
    Refused = 7,
    /// A fault of metalform itself.
    Bug = 70,
    /// Interrupted by a signal.
    Interrupted = 130,
}

impl From<ErrorClass> for Exit {
    fn from(class: ErrorClass) -> Self {
        match class {
            ErrorClass::Configuration => Self::Configuration,
            ErrorClass::Ssh => Self::Ssh,
            ErrorClass::Host => Self::Host,
            ErrorClass::Etcd => Self::Etcd,
            ErrorClass::Api => Self::Api,
            ErrorClass::Refused => Self::Refused,
            ErrorClass::Bug => Self::Bug,
            ErrorClass::Interrupted => Self::Interrupted,
        }
    }
}

impl<E: CommandError> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { exit: error.class().into(), errors: error.errors(), hints: error.hints() }
    }
}

impl Failure {
    /// One error, no hint yet.
    pub fn new(exit: Exit, error: impl Into<String>) -> Self {
        Self { exit, errors: vec![error.into()], hints: Vec::new() }
    }

    /// The error and its sources, in one line.
    pub fn from_error(exit: Exit, error: &dyn std::error::Error) -> Self {
        Self::new(exit, error_chain(error))
    }

    /// With one more hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Prints it to standard error.
    pub fn print(&self) {
        let mut out = std::io::stderr().lock();
        for error in &self.errors {
            // A closed standard error cannot be reported anywhere.
            let _ = writeln!(out, "error: {}", printable(error));
        }
        for hint in &self.hints {
            let _ = writeln!(out, "hint: {}", printable(hint));
        }
    }

    /// Prints it as JSON, one object a line, like events: `{"time":...,"event":"error","message":...}`.
    pub fn print_json(&self, time: Timestamp) {
        let mut out = std::io::stderr().lock();
        let errors = self.errors.iter().map(|message| ("error", message));
        for (event, message) in errors.chain(self.hints.iter().map(|hint| ("hint", hint))) {
            let _ = writeln!(out, "{}", json!({"time": time, "event": event, "message": message}));
        }
    }
}
