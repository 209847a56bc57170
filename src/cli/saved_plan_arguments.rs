//! Options of deployments whose plans are saved, and their run.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::failure::{Exit, Failure};
use super::invocation::Invocation;
use super::operation_arguments::OperationArguments;
use crate::service::deploy::{DeployReport, DeployRequest, deploy};
use crate::service::deploy_saved_plan::deploy_saved_plan;
use crate::service::deployment_file::DeploymentFile;
use crate::service::plan_deployment::plan_deployment;
use crate::service::saved_file::SavedFile;

/// Options of deployments whose plans are saved.
#[derive(Debug, Args)]
pub struct SavedPlanArguments {
    /// With --dry-run: save the plan to this file, for --plan FILE; it contains no file content or secret, and has mode 0600
    #[arg(long, value_name = "FILE", requires = "dry_run")]
    out: Option<PathBuf>,
    /// Do what the plan saved by `--dry-run --out FILE` contains, and nothing else; if a Node, a host, a state or the members
    /// of etcd have changed since then, change nothing and exit with code 7
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    plan: Option<PathBuf>,
}

impl SavedPlanArguments {
    /// Deploys, or predicts it, and writes the report. With a saved plan, only `run` and `limit` of the request count.
    ///
    /// # Errors
    /// When Nodes or the plan cannot be used, and when a node failed.
    pub async fn deploy(
        &self,
        kind: &'static str,
        request: &DeployRequest,
        operation: &OperationArguments,
        invocation: &Invocation,
    ) -> Result<ExitCode, Failure> {
        let DeployReport { nodes, changes, .. } = match (&self.plan, &self.out) {
            (Some(path), _) => {
                let file = DeploymentFile::read(path)?;
                let origin = file.workspace(operation.origin(invocation));
                let workspace = operation.open_from(invocation, origin).await?;
                deploy_saved_plan(&file, (request.run, request.limit), workspace, &invocation.cancel).await?
            }
            (None, Some(path)) => {
                let directory = std::env::current_dir().map_err(|error| {
                    Failure::new(Exit::Configuration, format!("current directory: {error}"))
                })?;
                let mut origin = operation.origin(invocation);
                // The plan is for the machines that have these host keys.
                origin.ssh.dry_run = false;
                let workspace = operation.open_from(invocation, origin.clone()).await?;
                let origin = origin.resolved(&directory);
                let (report, file) = plan_deployment(request, origin, workspace, &invocation.cancel).await?;
                if let Some(file) = file {
                    file.write(path)?;
                }
                report
            }
            (None, None) => {
                let workspace = operation.open(invocation).await?;
                deploy(request, workspace, &invocation.cancel).await?
            }
        };
        operation.finish(kind, &nodes, &changes)
    }
}
