//! `remove-node`: removes nodes from the cluster, in an order that keeps etcd's quorum.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::cluster_nodes::{self, ClusterNodesError};
use super::etcd_members;
use super::expiry_warning::warn_of_expiry;
use super::node_change::ReadNode;
use super::node_selection::roles;
use super::operation_report::{GoalSource, NodeReport, RunOptions, operate};
use super::recorded_nodes;
use super::voter_lists;
use super::workspace::goal;
use crate::engine::cancel::Cancel;
use crate::engine::share::{Share, UPLOADS};
use crate::etcd::member::Membership;
use crate::model::event::Event;
use crate::model::name::HostName;
use crate::model::node::NodeSpec;
use crate::operation::cluster_site::{ClusterSite, Ports, Workspace};
use crate::operation::effect::KeepData;
use crate::operation::goal::NodeGoal;
use crate::operation::removal_goal::RemoveGoal;
use crate::operation::remove::RemoveOperation;

/// Which Nodes to remove, and how.
#[derive(Debug, Clone)]
pub struct RemoveRequest {
    /// Their names.
    pub names: BTreeSet<HostName>,
    /// How they are run.
    pub run: RunOptions,
    /// Whether their hosts are gone.
    pub offline: bool,
    /// Whether pods that no controller creates again are deleted too.
    pub force: bool,
    /// Whether the data of the nodes stays on their hosts.
    pub keep_data: bool,
    /// How long the pods of each may take to leave.
    pub drain_limit: Duration,
}

/// Removes nodes, one at a time. All Nodes are read and checked first. A node that fails does not keep the next from
/// being removed: each is checked against the cluster as it is by then.
///
/// # Errors
/// When a Node is missing or wrong; nothing was done then. Failures of nodes are in the report, in the order in which they
/// were tried.
pub async fn remove(
    request: &RemoveRequest,
    workspace: Arc<Workspace>,
    cancel: &Cancel,
) -> Result<Vec<NodeReport>, ClusterNodesError> {
    let names: Vec<HostName> = request.names.iter().cloned().collect();
    warn_of_expiry(&workspace);
    let mut specs = cluster_nodes::named(&workspace.layout, &names).await?;
    let at = Instant::now();
    if specs.len() > 1 {
        // Without etcd's answer, the run says why.
        let observed = etcd_members::members(&workspace.layout).await.ok();
        specs.sort_by_cached_key(|spec| rank(spec, observed.as_ref()));
    }
    if !request.run.dry_run {
        let line = |spec: &NodeSpec| format!("{}: leaves the cluster ({})", spec.name, roles(spec));
        (workspace.report)(Event::PlanMade { lines: specs.iter().map(line).collect() });
    }
    let mut reports = Vec::new();
    for spec in specs {
        reports.push(remove_one(workspace.clone(), (spec, at), request, cancel).await);
    }
    if !request.run.dry_run {
        voter_lists::warn_of_others(&workspace.layout, &reports).await;
        recorded_nodes::record(&workspace.layout).await;
    }
    Ok(reports)
}

/// Sick members first: with them the others lose their margin. The leader last, so that it hands over once.
fn rank(spec: &NodeSpec, observed: Option<&Membership>) -> u8 {
    let named =
        |membership: &&Membership| membership.members.iter().any(|member| member.name == spec.name.as_str());
    let Some(membership) = observed.filter(named) else { return 1 };
    let own = membership.members.iter().find(|member| member.name == spec.name.as_str());
    match own.map(|member| member.status().map(|status| status.leader)) {
        Some(None) => 0,
        Some(Some(true)) => 3,
        _ => 2,
    }
}

async fn remove_one(
    workspace: Arc<Workspace>,
    (spec, at): (NodeSpec, Instant),
    request: &RemoveRequest,
    cancel: &Cancel,
) -> NodeReport {
    let name = spec.name.clone();
    let others = request.names.iter().filter(|other| **other != name);
    let goal = RemoveGoal {
        node: NodeGoal { leaves: true, ..goal(&workspace, &spec) },
        offline: request.offline,
        force: request.force,
        kubelet_stopped: false,
        dedicated: false,
        keep_data: KeepData(request.keep_data),
        drain_limit: request.drain_limit,
        together: others.map(ToString::to_string).collect(),
    };
    let ports = Ports::of_command(&workspace, &spec, Share::new(cancel.clone(), UPLOADS));
    // A removal that was waited for leaves nothing to do.
    let read = ReadNode { spec: spec.clone(), at: Some(at), may_be_deleted: true };
    let site = ClusterSite::new(workspace.clone(), goal.node.clone(), spec, ports);
    let node = (name, GoalSource::Node(Box::new(read)));
    operate::<RemoveOperation>(&goal, node, (&workspace, site), request.run, cancel).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcd::simulation::{down, leading, membership, voter};
    use crate::model::api_contract::SSH_HOST;
    use crate::model::node::{NodeManifest, NodeMetadata};

    fn spec(name: &str) -> NodeSpec {
        let annotations = [(SSH_HOST.to_owned(), "192.0.2.1".to_owned())].into();
        let metadata = NodeMetadata { name: Some(name.to_owned()), annotations, ..NodeMetadata::default() };
        NodeSpec::parse(&NodeManifest { metadata, ..NodeManifest::default() }).unwrap()
    }

    #[test]
    fn sick_members_leave_first_and_the_leader_last() {
        let observed =
            membership(vec![leading(voter(1, "a")), voter(2, "b"), down(voter(3, "c")), voter(4, "d")]);
        let mut names = ["a", "b", "c", "d", "worker"];
        names.sort_by_key(|name| rank(&spec(name), Some(&observed)));
        assert_eq!(names, ["c", "worker", "b", "d", "a"]);
        assert_eq!(rank(&spec("a"), None), 1);
    }
}
