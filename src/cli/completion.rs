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
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "metalform", &mut script);
        output::print(&String::from_utf8_lossy(&script))?;
        Ok(ExitCode::SUCCESS)
    }
}
