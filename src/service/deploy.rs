//! `deploy-node` and `expand`: deploy the hosts of Nodes.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;

use super::cluster_nodes::{self, ClusterNodesError};
use super::membership_steps::{MembershipStep, membership_steps};
use super::operation_report::{NodeReport, RunOptions, operate, set_aside};
use super::recorded_nodes;
use super::workspace::goal;
use crate::engine::cancel::Cancel;
use crate::engine::share::{Share, UPLOADS};
use crate::model::name::HostName;
use crate::model::node::{NodeProblems, NodeSpec};
use crate::model::role::Role;
use crate::operation::cluster_site::{ClusterSite, Ports, Workspace};
use crate::operation::deploy::DeployOperation;
use crate::operation::goal::NodeGoal;

/// Which Nodes to deploy, and how.
#[derive(Debug, Clone)]
pub struct DeployRequest {
    /// The Nodes.
    pub nodes: NodeSelection,
    /// How they are run.
    pub run: RunOptions,
    /// Whether an etcd member that lost its data may be removed and joined again.
    pub replace_member: bool,
    /// Whether hosts may be other machines than those that their Nodes are of.
    pub replace_machine: bool,
    /// Hosts to work on at the same time.
    pub limit: NonZeroUsize,
}

/// Which Nodes of the cluster.
#[derive(Debug, Clone)]
pub enum NodeSelection {
    /// These. One that is missing or wrong is an error of the command.
    Named(BTreeSet<HostName>),
    /// All of them. One that is wrong is a failure of that node alone.
    All,
}

/// The outcome of each node.
#[derive(Debug)]
pub struct DeployReport {
    /// Ordered by name.
    pub nodes: Vec<NodeReport>,
    /// How the voters of etcd change, in a dry run.
    pub steps: Vec<MembershipStep>,
}

/// Deploys nodes side by side. All Nodes are read and checked first. Changes of etcd membership are made one at a time;
/// what is slow and harmless is done on all hosts meanwhile.
///
/// # Errors
/// When the API cannot be used, and when a Node that is named is missing or wrong; nothing was done then. Failures of nodes
/// are in the report.
pub async fn deploy(
    request: &DeployRequest,
    workspace: Arc<Workspace>,
    cancel: &Cancel,
) -> Result<DeployReport, ClusterNodesError> {
    let (mut specs, wrong) = match &request.nodes {
        NodeSelection::Named(names) => {
            let names: Vec<HostName> = names.iter().cloned().collect();
            (cluster_nodes::named(&workspace.layout, &names).await?, Vec::new())
        }
        NodeSelection::All => judged(&cluster_nodes::list(&workspace.layout).await?),
    };
    specs.sort_by_key(|spec| (rank(spec), spec.name.clone()));
    let each = specs.into_iter().map(|spec| deploy_one(workspace.clone(), spec, request, cancel));
    let deployed: Vec<NodeReport> =
        futures::stream::iter(each).buffer_unordered(request.limit.get()).collect().await;
    let refused =
        wrong.into_iter().map(|(name, problems)| set_aside(&workspace, name, problems, request.run.dry_run));
    let mut nodes: Vec<NodeReport> = deployed.into_iter().chain(refused).collect();
    nodes.sort_by(|one, other| one.name.cmp(&other.name));
    let steps = membership_steps(&nodes);
    if !request.run.dry_run {
        recorded_nodes::record(&workspace.layout).await;
    }
    Ok(DeployReport { nodes, steps })
}

/// What each Node specifies, and those that are wrong.
fn judged(nodes: &[Node]) -> (Vec<NodeSpec>, Vec<(HostName, NodeProblems)>) {
    let (mut specs, mut wrong) = (Vec::new(), Vec::new());
    for node in nodes {
        match (NodeSpec::from_node(node), node.name_any().parse()) {
            (Ok(spec), _) => specs.push(spec),
            (Err(problems), Ok(name)) => wrong.push((name, problems)),
            // The API has no Node whose name is not one.
            (Err(_), Err(_)) => {}
        }
    }
    (specs, wrong)
}

/// What others depend on, and what takes turns, begins first.
fn rank(spec: &NodeSpec) -> u8 {
    if spec.roles.contains(&Role::Bootstrap) {
        0
    } else if spec.roles.contains(&Role::Etcd) || spec.roles.contains(&Role::Master) {
        1
    } else {
        2
    }
}

async fn deploy_one(
    workspace: Arc<Workspace>,
    spec: NodeSpec,
    request: &DeployRequest,
    cancel: &Cancel,
) -> NodeReport {
    for warning in &spec.warnings {
        tracing::warn!("{}: {warning}", spec.name);
    }
    if let Some(available) = workspace.bundle.kubernetes_version()
        && let Err(problems) = spec.check_version(available)
    {
        return set_aside(&workspace, spec.name, problems, request.run.dry_run);
    }
    let goal = NodeGoal {
        // Another machine has none of the member's data.
        replace_member: request.replace_member || request.replace_machine,
        replace_machine: request.replace_machine,
        ..goal(&workspace, &spec)
    };
    let ports = Ports::of_command(&workspace, &spec, Share::new(cancel.clone(), UPLOADS));
    let name = spec.name.clone();
    let site = ClusterSite::new(workspace.clone(), goal.clone(), spec, ports);
    operate::<DeployOperation>(&goal, name, (&workspace, site), request.run, cancel).await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(name: &str, roles: &[&str], annotated: bool) -> Node {
        let labels: std::collections::BTreeMap<String, &str> =
            roles.iter().map(|role| (format!("node-role.kubernetes.io/{role}"), "")).collect();
        let annotations =
            if annotated { json!({ "metalform.dev/ssh-host": "192.0.2.1" }) } else { json!({}) };
        let metadata = json!({ "name": name, "labels": labels, "annotations": annotations });
        serde_json::from_value(json!({ "apiVersion": "v1", "kind": "Node", "metadata": metadata })).unwrap()
    }

    #[test]
    fn a_wrong_node_is_set_aside_and_what_takes_turns_begins_first() {
        let nodes = [
            node("a-worker", &[], true),
            node("broken", &["king"], true),
            node("etcd-1", &["etcd"], true),
            node("first", &["bootstrap", "master"], true),
            node("unreached", &[], false),
        ];
        let (mut specs, wrong) = judged(&nodes);
        specs.sort_by_key(|spec| (rank(spec), spec.name.clone()));
        let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
        assert_eq!(names, ["first", "etcd-1", "a-worker"]);
        let wrong: Vec<&str> = wrong.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(wrong, ["broken", "unreached"]);
    }
}
