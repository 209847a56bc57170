//! `metalform machine-controller`.

use std::num::NonZeroUsize;
use std::process::ExitCode;

use clap::Args;

use super::failure::{Exit, Failure};
use super::invocation::Invocation;
use super::ssh_arguments::SshArguments;
use super::workspace;
use crate::controller::machine_controller::{self, ControllerSettings};
use crate::serve::notify;

/// Run the controllers of Machines: deploy, replace and reset hosts of the pool as MachineDeployments require; the unit
/// metalform-machine-controller.service runs it
///
/// Of several that run, the one that has the Lease metalform-machine-controller in kube-system works; it drops its work
/// before another one can have the Lease. Each host compares the token of its claim and refuses programs of an earlier one.
#[derive(Debug, Args)]
pub struct MachineControllerArgs {
    /// Provision at most N hosts at the same time
    #[arg(long, value_name = "N", default_value = "10")]
    provisionings: NonZeroUsize,
    #[command(flatten)]
    ssh: SshArguments,
}

impl MachineControllerArgs {
    /// Runs until it is interrupted: what is begun on hosts then, the next run resumes.
    ///
    /// # Errors
    /// When the workspace or the credentials cannot be read. Later failures are logged and tried again.
    pub async fn run(&self, invocation: &Invocation) -> Result<ExitCode, Failure> {
        let workspace = workspace::open(invocation, &self.ssh).await?;
        notify::ready();
        let max_pods = workspace.configuration.kubernetes.max_pods;
        let settings = ControllerSettings { provisionings: self.provisionings, max_pods };
        machine_controller::run(workspace, settings, &invocation.cancel)
            .await
            .map_err(|error| Failure::from_error(Exit::Api, &error))?;
        Ok(ExitCode::SUCCESS)
    }
}
