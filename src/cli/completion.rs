//! `metalform completion`.

use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::failure::Failure;
use super::{Cli, output};

/// Print a completion script for a shell
#[derive(Debug, Args)]
pub struct CompletionArgs {
    /// The shell
    shell: Shell,
}

impl CompletionArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// When standard output is closed.
    pub fn run(&self) -> Result<ExitCode, Failure> {
        output::print(&script(self.shell))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The script of a shell.
pub(super) fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "metalform", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}
