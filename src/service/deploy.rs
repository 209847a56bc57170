//! `deploy-node`: deploys the hosts of Nodes.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::join_all;

use super::cluster_nodes::{self, ClusterNodesError};
use super::operation_failure::OperationFailure;
use super::operation_report::{NodeReport, NodeWork, operate};
use super::workspace::goal;
use crate::engine::cancel::Cancel;
use crate::engine::share::{Share, UPLOADS};
use crate::model::name::HostName;
use crate::model::node::NodeSpec;
use crate::operation::cluster_site::{ClusterSite, Ports, Workspace};
use crate::operation::deploy::DeployOperation;
use crate::operation::goal::NodeGoal;

/// Which Nodes to deploy.
#[derive(Debug, Clone)]
pub struct DeployRequest {
    /// Their names.
    pub names: BTreeSet<HostName>,
    /// Whether only to plan; nothing is changed then.
    pub dry_run: bool,
    /// Whether an etcd member that lost its data may be removed and joined again.
    pub replace_member: bool,
}

/// The outcome of each node.
#[derive(Debug)]
pub struct DeployReport {
    /// Ordered by name.
    pub nodes: Vec<NodeReport>,
}

/// Deploys nodes side by side. All Nodes are read and checked first.
///
/// # Errors
/// When a Node is missing or wrong; nothing was done then. Failures of nodes are in the report.
pub async fn deploy(
    request: &DeployRequest,
    workspace: Arc<Workspace>,
    cancel: &Cancel,
) -> Result<DeployReport, ClusterNodesError> {
    let names: Vec<HostName> = request.names.iter().cloned().collect();
    let specs = cluster_nodes::named(&workspace.layout, &names).await?;
    let each = specs.into_iter().map(|spec| deploy_one(workspace.clone(), spec, request, cancel));
    Ok(DeployReport { nodes: join_all(each).await })
}

async fn deploy_one(
    workspace: Arc<Workspace>,
    spec: NodeSpec,
    request: &DeployRequest,
    cancel: &Cancel,
) -> NodeReport {
    let dry_run = request.dry_run;
    for warning in &spec.warnings {
        tracing::warn!("{}: {warning}", spec.name);
    }
    if let Some(available) = workspace.bundle.kubernetes_version()
        && let Err(problems) = spec.check_version(available)
    {
        let failure = Some(OperationFailure::Version(problems));
        return NodeReport { name: spec.name, work: NodeWork::none(dry_run), failure };
    }
    let goal = NodeGoal { replace_member: request.replace_member, ..goal(&workspace, &spec) };
    let ports = Ports::of_command(&workspace, &spec, Share::new(cancel.clone(), UPLOADS));
    let name = spec.name.clone();
    let site = ClusterSite::new(workspace.clone(), goal.clone(), spec, ports);
    operate::<DeployOperation>(&goal, name, (&workspace, site), dry_run, cancel).await
}
