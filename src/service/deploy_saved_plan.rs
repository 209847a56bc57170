//! `expand --plan`: deploys as a saved plan foresees it, if that is still what would be done.

use std::num::NonZeroUsize;
use std::sync::Arc;

use super::cluster_nodes::{self, ClusterNodesError};
use super::command_error::{CommandError, CommandFailure, ErrorClass};
use super::deploy::{DeployReport, DeployRequest, Foreseen, deploy_selected};
use super::deployment_drift::{DeploymentDrift, drift};
use super::deployment_file::DeploymentFile;
use super::expiry_warning::warn_of_expiry;
use super::foreseen_deployment::ForeseenDeployment;
use super::node_selection::NodeSelection;
use super::operation_failure::{self, OperationFailure};
use super::operation_report::{NodeReport, NodeWork, RunOptions};
use super::running_cluster;
use super::saved_file::{SavedFile, SavedFileError};
use crate::engine::cancel::Cancel;
use crate::model::event::Event;
use crate::model::resumption::{PlanMaker, ResumedBy};
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
    warn_of_expiry(&workspace);
    running_cluster::check(&workspace).await?;
    let mut request = file.request(RunOptions { dry_run: false, ..run }, limit);
    let mut selected = request.nodes.among(&cluster_nodes::list(&workspace.layout).await?);
    let mut now = ForeseenDeployment { selected: selected.names(), ..ForeseenDeployment::default() };
    // Before any host is connected to.
    judge(drift(&file.foreseen, &now), &[])?;
    selected.retain(|node| file.foreseen.nodes.contains_key(node));
    let dry = DeployRequest { run: RunOptions { dry_run: true, ..run }, ..request.clone() };
    let predicted =
        deploy_selected(selected.clone(), &Foreseen::new(), &dry, workspace.clone(), cancel).await;
    now = ForeseenDeployment::of(now.selected, &selected.specs, &predicted, &key);
    let failures: Vec<&OperationFailure> =
        predicted.nodes.iter().filter_map(|node| node.failure.as_ref()).collect();
    judge(drift(&file.foreseen, &now), &failures)?;
    let maker = match request.nodes {
        NodeSelection::All => PlanMaker::Expand,
        NodeSelection::Named(_) => PlanMaker::DeployNode,
    };
    (workspace.report)(Event::PlanMade { lines: now.lines() });
    // From here on, what was done of it is drift to the same plan.
    request.run.resumed = ResumedBy::NewPlan(maker);
    Ok(deploy_selected(selected, &foreseen(predicted), &request, workspace, cancel).await)
}

/// Meanwhile a host may change: then it is refused before it is touched.
fn foreseen(predicted: DeployReport) -> Foreseen {
    let of_node = |node: NodeReport| match node.work {
        NodeWork::Planned(preview) => Some((node.name, Arc::new(preview.foreseen))),
        NodeWork::Done(_) => None,
    };
    predicted.nodes.into_iter().filter_map(of_node).collect()
}

/// A manifest that was right and is wrong now is a difference too.
fn judge(
    differences: Vec<DeploymentDrift>,
    failures: &[&OperationFailure],
) -> Result<(), DeploySavedPlanError> {
    let mut lines: Vec<String> = differences.iter().map(ToString::to_string).collect();
    let edited = failures.iter().any(|failure| matches!(failure, OperationFailure::Manifest(_)));
    match operation_failure::of(failures.iter().copied()) {
        Some(failures) if lines.is_empty() && !edited => Err(DeploySavedPlanError::Failed(failures)),
        None if lines.is_empty() => Ok(()),
        failures => {
            lines.extend(failures.iter().flat_map(CommandError::errors));
            Err(DeploySavedPlanError::Differs(lines))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::node::{NodeProblem, NodeProblems};
    use crate::operation::run::RunError;

    #[test]
    fn what_differs_is_refused_and_what_could_not_be_compared_has_its_own_exit_code() {
        let interrupted = OperationFailure::Run {
            node: "a".parse().unwrap(),
            error: RunError::Interrupted,
            without_host: None,
            by_manifest: false,
            resumed: ResumedBy::SameCommand,
        };
        let problems = NodeProblems { node: "b".to_owned(), problems: vec![NodeProblem::NoName] };
        let edited = OperationFailure::Manifest(problems);
        let gone = DeploymentDrift::NotSelected("c".parse().unwrap());
        let (line, wrong, stopped) =
            ("c: in the plan, but no longer selected", "node b: metadata.name is missing", "a: interrupted");
        for (differences, failures, expected) in [
            (vec![], vec![], None),
            (vec![], vec![&interrupted], Some((ErrorClass::Interrupted, vec![stopped]))),
            (vec![], vec![&edited], Some((ErrorClass::Refused, vec![wrong]))),
            (vec![], vec![&interrupted, &edited], Some((ErrorClass::Refused, vec![stopped, wrong]))),
            (vec![gone.clone()], vec![], Some((ErrorClass::Refused, vec![line]))),
            (vec![gone], vec![&interrupted], Some((ErrorClass::Refused, vec![line, stopped]))),
        ] {
            let found = judge(differences, &failures).err().map(|error| (error.class(), error.errors()));
            let expected =
                expected.map(|(class, lines)| (class, lines.into_iter().map(str::to_owned).collect()));
            assert_eq!(found, expected);
        }
    }
}
