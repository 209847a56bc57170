//! `metalform check`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::failure::Failure;
use super::{Global, clock, output};
use crate::service::check::{CheckRequest, CheckedSubject, check_paths};

/// Check states, templates, rosters and configurations without a host; reports every error with line and column
///
/// A directory is a tree, or the states/ of one. A file below states/ or templates/ is checked as part of its tree, and
/// only its own errors are shown; any other file is a roster, or a BootstrapConfiguration if it has an apiVersion.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Directories and files [default: the tree of --tree, or the built-in one]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Check that these hosts have every value that the states of their roles read; may be repeated
    #[arg(long, value_name = "FILE")]
    roster: Vec<PathBuf>,
}

impl CheckArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// One line for each error.
    pub fn run(&self, global: &Global) -> Result<ExitCode, Failure> {
        let request = CheckRequest {
            tree: global.tree.clone(),
            paths: self.paths.clone(),
            roster: self.roster.clone(),
        };
        let report = check_paths(&request, clock::now())?;
        output::print(&report.subjects.iter().map(line).collect::<String>())?;
        Ok(ExitCode::SUCCESS)
    }
}

fn line(subject: &CheckedSubject) -> String {
    let CheckedSubject { name, required_values } = subject;
    let values: Vec<&str> = required_values.iter().map(String::as_str).collect();
    match values.as_slice() {
        [] => format!("{name}: OK\n"),
        values => format!("{name}: OK; requires roster values {} (see --roster)\n", values.join(", ")),
    }
}
