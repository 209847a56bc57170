//! `metalform bootstrap`.

use std::process::ExitCode;

use clap::Args;

use super::failure::Failure;
use super::invocation::Invocation;
use super::operation_arguments::OperationArguments;
use crate::service::bootstrap::bootstrap;

/// Make this machine the first node of a cluster: package repository, registry, CAs, control plane
///
/// Reads /etc/metalform/bootstrap.yaml. Run again, it changes only what differs.
#[derive(Debug, Args)]
pub struct Bootstrap {
    #[command(flatten)]
    operation: OperationArguments,
}

impl Bootstrap {
    /// Runs the command.
    ///
    /// # Errors
    /// When the workspace or the bundle cannot be used, and when the run failed.
    pub async fn run(&self, invocation: &Invocation) -> Result<ExitCode, Failure> {
        let workspace = self.operation.open(invocation).await?;
        let (report, changes) =
            bootstrap(workspace, self.operation.run_options(), &invocation.cancel).await?;
        self.operation.finish("Bootstrap", &[report], &changes)
    }
}
