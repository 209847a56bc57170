//! `expand --plan`: deploys as a saved plan foresees it, if that is still what would be done.

use std::num::NonZeroUsize;
use std::sync::Arc;

use super::cluster_nodes::{self, ClusterNodesError};
use super::command_error::{CommandError, CommandFailure, ErrorClass};
use super::deploy::{DeployReport, DeployRequest, deploy_selected};
use super::deployment_drift::drift;
use super::deployment_file::DeploymentFile;
use super::foreseen_deployment::ForeseenDeployment;
use super::operation_failure;
use super::operation_report::RunOptions;
use super::saved_file::{SavedFile, SavedFileError};
use crate::engine::cancel::Cancel;
use crate::operation::cluster_site::Workspace;

/// Why a saved plan was not begun on any node.
#[derive(Debug, thiserror::Error)]
pub enum DeploySavedPlanError {
    /// The file cannot be used.
    #[error(transparent)]
    File(#[from] SavedFileError),
    /// Nodes cannot be read.
    #[error(transparent)]
    Nodes(#[from] ClusterNodesError),
    /// Something differs from the plan; one line each.
    #[error("{}", .0.join("; "))]
    Differs(Vec<String>),
    /// Nodes could not be compared with the plan.
    #[error("{}", .0.errors().join("; "))]
    Failed(CommandFailure),
}

const UNTOUCHED: &str = "nothing was changed on any host";

impl CommandError for DeploySavedPlanError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::File(error) => error.class(),
            Self::Nodes(error) => error.class(),
            Self::Differs(_) => ErrorClass::Refused,
            Self::Failed(failures) => failures.class(),
        }
    }

    fn errors(&self) -> Vec<String> {
        match self {
            Self::File(error) => error.errors(),
            Self::Nodes(error) => error.errors(),
            Self::Differs(lines) => lines.clone(),
            Self::Failed(failures) => failures.errors(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::File(error) => error.hints(),
            Self::Nodes(error) => error.hints(),
            Self::Differs(_) => vec![format!("{UNTOUCHED}; make a new plan and review it")],
            Self::Failed(failures) => {
                let mut hints = failures.hints();
                hints.push(UNTOUCHED.to_owned());
                hints
            }
        }
    }
}

/// Predicts the deployment again and compares; only when nothing differs on any node, deploys the nodes that have a plan,
/// by the manifests that were compared.
///
/// # Errors
/// When the plan cannot be used, a node of it cannot be compared, or anything differs. Nothing is changed then. Failures of
/// nodes while the plan is carried out are in the report.
pub async fn deploy_saved_plan(
    file: &DeploymentFile,
    (run, limit): (RunOptions, NonZeroUsize),
    workspace: Arc<Workspace>,
    cancel: &Cancel,
) -> Result<DeployReport, DeploySavedPlanError> {
    let key = file.key()?;
    let request = file.request(RunOptions { dry_run: false, ..run }, limit);
    let mut selected = request.nodes.among(&cluster_nodes::list(&workspace.layout).await?);
    let mut now = ForeseenDeployment { selected: selected.names(), ..ForeseenDeployment::default() };
    // Before any host is connected to.
    compare(&file.foreseen, &now, None)?;
    selected.retain(|node| file.foreseen.nodes.contains_key(node));
    let dry = DeployRequest { run: RunOptions { dry_run: true, ..run }, ..request.clone() };
    let predicted = deploy_selected(selected.clone(), &dry, workspace.clone(), cancel).await;
    now = ForeseenDeployment::of(now.selected, &selected.specs, &predicted, &key);
    let failures = predicted.nodes.iter().filter_map(|node| node.failure.as_ref());
    compare(&file.foreseen, &now, operation_failure::of(failures))?;
    Ok(deploy_selected(selected, &request, workspace, cancel).await)
}

fn compare(
    planned: &ForeseenDeployment,
    now: &ForeseenDeployment,
    failures: Option<CommandFailure>,
) -> Result<(), DeploySavedPlanError> {
    let differences: Vec<String> = drift(planned, now).iter().map(ToString::to_string).collect();
    match failures {
        None if differences.is_empty() => Ok(()),
        Some(failures) if differences.is_empty() => Err(DeploySavedPlanError::Failed(failures)),
        failures => {
            let failures = failures.map(|failures| failures.errors()).unwrap_or_default();
            Err(DeploySavedPlanError::Differs([differences, failures].concat()))
        }
    }
}
