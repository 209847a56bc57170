//! `metalform check`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::failure::{Exit, Failure};
use super::{output, setting};
use crate::resource;
use crate::state::{Tree, check};

/// Check a directory of states/ and templates/ with no host present: every fault, with line and column
#[derive(Debug, Args)]
pub struct Check {
    /// The directory that holds states/ and templates/
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

impl Check {
    /// Runs it.
    ///
    /// # Errors
    /// One line for each fault.
    pub fn run(&self) -> Result<ExitCode, Failure> {
        let tree = Tree::directory(&self.directory)
            .map_err(|error| Failure::from_error(Exit::Configuration, &error))?;
        let faults = check(&tree, &resource::fields);
        if !faults.is_empty() {
            return Err(setting::faults(&faults));
        }
        output::print(&format!("{}: sound\n", self.directory.display()))?;
        Ok(ExitCode::SUCCESS)
    }
}
