//! The one place where errors are printed: what failed, why, and what to do.

use std::io::Write;

use jiff::Timestamp;
use serde_json::json;

use crate::report::diff::printable;

/// What a command ends with when it did not do what it was asked for.
#[derive(Debug)]
pub struct Failure {
    /// See the design: 1 usage or configuration, 3 SSH, 4 host, 5 etcd, 6 Kubernetes API, 7 refused for safety.
    pub exit: Exit,
    /// Lines, each a whole sentence about one thing that failed.
    pub errors: Vec<String>,
    /// What to do, in this order.
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
    /// A host cannot be reached.
    Ssh = 3,
    /// A host cannot be made what it should be.
    Host = 4,
    /// etcd.
    Etcd = 5,
    /// The Kubernetes API.
    Api = 6,
    /// Refused for safety.
    Refused = 7,
    /// A fault of metalform itself.
    Bug = 70,
    /// The operator interrupted it.
    Interrupted = 130,
}

impl Failure {
    /// One error, no hint yet.
    pub fn new(exit: Exit, error: impl Into<String>) -> Self {
        Self { exit, errors: vec![error.into()], hints: Vec::new() }
    }

    /// The error and all that caused it, in one line.
    pub fn from_error(exit: Exit, error: &dyn std::error::Error) -> Self {
        Self::new(exit, chain(error))
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
            // Nobody is left to tell when standard error is closed.
            let _ = writeln!(out, "error: {}", printable(error));
        }
        for hint in &self.hints {
            let _ = writeln!(out, "hint: {hint}");
        }
    }

    /// The same for programs, one object a line, as events are: `{"time":...,"event":"error","message":...}`.
    pub fn print_json(&self, time: Timestamp) {
        let mut out = std::io::stderr().lock();
        let errors = self.errors.iter().map(|message| ("error", message));
        for (event, message) in errors.chain(self.hints.iter().map(|hint| ("hint", hint))) {
            let _ = writeln!(out, "{}", json!({"time": time, "event": event, "message": message}));
        }
    }
}

/// An error and its sources, each once: `a: b: c`.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let said = cause.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        source = cause.source();
    }
    // One line each: what a host printed may have many.
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
