//! `expand --dry-run --out FILE`: a dry run, and the plan to save.

use std::sync::Arc;

use super::cluster_nodes::ClusterNodesError;
use super::command_error::{CommandError, ErrorClass};
use super::deploy::{self, DeployReport, DeployRequest, Foreseen, deploy_selected};
use super::deployment_file::DeploymentFile;
use super::foreseen_deployment::ForeseenDeployment;
use super::operation_report::RunOptions;
use super::saved_file::SavedFileError;
use super::workspace_origin::WorkspaceOrigin;
use crate::engine::cancel::{Cancel, CancelLevel};
use crate::engine::saved_plan::key::{Key, SALT};
use crate::operation::cluster_site::Workspace;

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanDeploymentError {
    /// Nodes cannot be used.
    #[error(transparent)]
    Nodes(#[from] ClusterNodesError),
    /// The plan cannot be saved.
    #[error(transparent)]
    File(#[from] SavedFileError),
}

impl CommandError for PlanDeploymentError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Nodes(error) => error.class(),
            Self::File(error) => error.class(),
        }
    }

    fn errors(&self) -> Vec<String> {
        match self {
            Self::Nodes(error) => error.errors(),
            Self::File(error) => error.errors(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Nodes(error) => error.hints(),
            Self::File(error) => error.hints(),
        }
    }
}

/// Predicts a deployment. Changes nothing. The plan is `None` where no node has one, and at an interruption. Paths of `origin`, which the workspace
/// was opened from, must be absolute.
///
/// # Errors
/// When Nodes cannot be read, or the configuration does not fit the cluster. Failures of nodes are in the report; they are
/// not in the plan.
pub async fn plan_deployment(
    request: &DeployRequest,
    origin: WorkspaceOrigin,
    workspace: Arc<Workspace>,
    cancel: &Cancel,
) -> Result<(DeployReport, Option<DeploymentFile>), PlanDeploymentError> {
    let request = DeployRequest { run: RunOptions { dry_run: true, ..request.run }, ..request.clone() };
    let selected = deploy::selected(&request, &workspace).await?;
    let (names, specs, made) = (selected.names(), selected.specs.clone(), (workspace.now)());
    let salt: [u8; SALT] = rand::random();
    let report = deploy_selected(selected, &Foreseen::new(), &request, workspace, cancel).await;
    let foreseen = ForeseenDeployment::of(names, &specs, &report, &Key::new(&salt));
    let interrupted = cancel.level() != CancelLevel::Continue;
    let file = match interrupted || foreseen.nodes.is_empty() {
        true => None,
        false => Some(DeploymentFile::new(salt, made, &request, origin, foreseen)?),
    };
    Ok((report, file))
}
