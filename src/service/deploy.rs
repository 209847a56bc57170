//! `deploy-node` and `expand`: deploy the hosts of Nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::Arc;

use futures::StreamExt;
use tokio::time::Instant;

use super::cluster_changes::ClusterChanges;
use super::cluster_nodes::ClusterNodesError;
use super::expiry_warning::warn_of_expiry;
use super::membership_steps::membership_steps;
use super::new_host_key::new_host_keys;
use super::node_change::ReadNode;
use super::node_selection::{NodeSelection, SelectedNodes};
use super::operation_report::{GoalSource, NodeReport, RunOptions, operate, set_aside};
use super::recorded_nodes;
use super::running_cluster;
use super::voter_lists;
use super::workspace::goal;
use crate::engine::cancel::Cancel;
use crate::engine::share::{Share, UPLOADS};
use crate::model::event::Event;
use crate::model::name::HostName;
use crate::model::node::NodeSpec;
use crate::model::role::Role;
use crate::operation::cluster_site::{ClusterSite, Ports, RunMachines, Workspace};
use crate::operation::deploy::DeployOperation;
use crate::operation::foreseen_changes::ForeseenChanges;
use crate::operation::goal::NodeGoal;
use crate::operation::observed::node::RunState;
use crate::transport::host_keys::AcceptedHostKey;

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

/// What a saved plan foresees of each node.
pub(super) type Foreseen = BTreeMap<HostName, Arc<ForeseenChanges>>;

/// The outcome of each node.
#[derive(Debug)]
pub struct DeployReport {
    /// Ordered by name.
    pub nodes: Vec<NodeReport>,
    /// What else changes.
    pub changes: ClusterChanges,
    /// The keys that were accepted of each host and its bastions.
    pub host_keys: BTreeMap<HostName, Vec<AcceptedHostKey>>,
}

/// Deploys nodes side by side. All Nodes are read and checked first. Changes of etcd membership are made one at a time;
/// what is slow and harmless is done on all hosts meanwhile.
///
/// # Errors
/// When the API cannot be used, when the configuration does not fit the cluster, and when a Node that is named is missing or
/// wrong; nothing was done then. Failures of nodes are in the report.
pub async fn deploy(
    request: &DeployRequest,
    workspace: Arc<Workspace>,
    cancel: &Cancel,
) -> Result<DeployReport, ClusterNodesError> {
    let selected = selected(request, &workspace).await?;
    if !request.run.dry_run {
        (workspace.report)(Event::PlanMade { lines: selected.lines() });
    }
    Ok(deploy_selected(selected, &Foreseen::new(), request, workspace, cancel).await)
}

/// The Nodes that a command selects, of a cluster that its configuration fits.
///
/// # Errors
/// Those of [`deploy`].
pub(super) async fn selected(
    request: &DeployRequest,
    workspace: &Workspace,
) -> Result<SelectedNodes, ClusterNodesError> {
    warn_of_expiry(workspace);
    // The same error first, whichever request ends first.
    let (checked, selected) =
        tokio::join!(running_cluster::check(workspace), request.nodes.read(&workspace.layout));
    checked?;
    selected
}

/// Deploys Nodes that were read before, whatever the request selects: beside those that were left out since, as when
/// the plan was made. Where there is an entry for a node, its host is not changed otherwise than foreseen. Masters
/// without etcd are deployed once more where other nodes have changed the voters that their API servers list.
pub(super) async fn deploy_selected(
    selected: SelectedNodes,
    foreseen: &Foreseen,
    request: &DeployRequest,
    workspace: Arc<Workspace>,
    cancel: &Cancel,
) -> DeployReport {
    let all = selected.deployable();
    let SelectedNodes { mut specs, wrong, left_out } = selected;
    specs.sort_by_key(|spec| (rank(spec), spec.name.clone()));
    let machines: Arc<RunMachines> = Arc::default();
    if request.run.dry_run {
        all.iter().for_each(|name| machines.record_run(name, RunState::Foreseen));
    } else {
        left_out.iter().for_each(|name| machines.record_run(name, RunState::Ended));
    }
    let shared = (&workspace, &machines);
    let known = (foreseen, Instant::now());
    let mut deployed = side_by_side((&specs, &all), known, request, shared, cancel).await;
    let outdated = voter_lists::outdated(&specs, &deployed);
    if request.run.dry_run {
        voter_lists::foretell(&outdated);
    } else {
        let again = side_by_side((&outdated, &all), known, request, shared, cancel).await;
        deployed = merged(deployed, again);
        voter_lists::warn_of_others(&workspace.layout, &deployed).await;
    }
    let refused = wrong
        .into_iter()
        .map(|(name, problems)| set_aside(&workspace, name, problems.into(), request.run.dry_run));
    let mut nodes: Vec<NodeReport> = deployed.into_iter().chain(refused).collect();
    nodes.sort_by(|one, other| one.name.cmp(&other.name));
    if !request.run.dry_run {
        recorded_nodes::record(&workspace.layout).await;
    }
    let accepted = |spec: &NodeSpec| (spec.name.clone(), workspace.pool.host_keys(&spec.name, &spec.ssh));
    let host_keys: BTreeMap<HostName, Vec<AcceptedHostKey>> = specs.iter().map(accepted).collect();
    let new_keys = host_keys.iter().flat_map(|(node, accepted)| new_host_keys(node, accepted));
    let changes = ClusterChanges {
        steps: membership_steps(&nodes),
        host_keys: new_keys.collect(),
        ..ClusterChanges::default()
    };
    DeployReport { nodes, changes, host_keys }
}

/// Deploys some Nodes of all that the command selects, with what is foreseen of them and when they were read.
async fn side_by_side(
    (some, all): (&[NodeSpec], &BTreeSet<HostName>),
    (foreseen, at): (&Foreseen, Instant),
    request: &DeployRequest,
    (workspace, machines): (&Arc<Workspace>, &Arc<RunMachines>),
    cancel: &Cancel,
) -> Vec<NodeReport> {
    let each = some.iter().map(|spec| {
        let foreseen = foreseen.get(&spec.name).cloned();
        let beside = Arc::new(all.iter().filter(|other| **other != spec.name).cloned().collect());
        // Those of a saved plan were read before the hosts were compared with it.
        let at = foreseen.is_none().then_some(at);
        let read = ReadNode { spec: spec.clone(), at, may_be_deleted: false };
        let shared = (workspace.clone(), machines.clone());
        async move {
            let report = deploy_one(shared, (read, beside, foreseen), request, cancel).await;
            if !request.run.dry_run {
                machines.record_run(&report.name, RunState::Ended);
            }
            report
        }
    });
    let each: Vec<_> = each.collect();
    futures::stream::iter(each).buffer_unordered(request.limit.get()).collect().await
}

/// One report a node.
fn merged(mut nodes: Vec<NodeReport>, again: Vec<NodeReport>) -> Vec<NodeReport> {
    for later in again {
        if let Some(at) = nodes.iter().position(|node| node.name == later.name) {
            let earlier = nodes.swap_remove(at);
            nodes.push(earlier.followed_by(later));
        }
    }
    nodes
}

/// What others depend on, and what takes turns, begins first. A member leaves etcd after those that join it: they begin
/// before every node without the role.
fn rank(spec: &NodeSpec) -> u8 {
    let has = |role: Role| spec.roles.contains(&role);
    match (has(Role::Etcd), has(Role::Bootstrap), has(Role::Master)) {
        (true, true, _) => 0,
        (true, false, _) => 1,
        (false, true, _) => 2,
        (false, false, true) => 3,
        (false, false, false) => 4,
    }
}

async fn deploy_one(
    (workspace, machines): (Arc<Workspace>, Arc<RunMachines>),
    (read, beside, foreseen): (ReadNode, Arc<BTreeSet<HostName>>, Option<Arc<ForeseenChanges>>),
    request: &DeployRequest,
    cancel: &Cancel,
) -> NodeReport {
    let spec = read.spec.clone();
    for warning in &spec.warnings {
        tracing::warn!("{}: {warning}", spec.name);
    }
    let checked = spec
        .check_bootstrap_role(&workspace.subject.name)
        .and_then(|()| spec.check_version(&workspace.bundles.versions()));
    if let Err(problems) = checked {
        return set_aside(&workspace, spec.name, problems.into(), request.run.dry_run);
    }
    let goal = NodeGoal {
        // Another machine has none of the member's data.
        replace_member: request.replace_member || request.replace_machine,
        replace_machine: request.replace_machine,
        beside,
        foreseen,
        ..goal(&workspace, &spec)
    };
    let ports = Ports::of_command(&workspace, &spec, Share::new(cancel.clone(), UPLOADS));
    let name = spec.name.clone();
    let site = ClusterSite::new(workspace.clone(), goal.clone(), spec, ports).among(machines);
    let node = (name, GoalSource::Node(Box::new(read)));
    operate::<DeployOperation>(&goal, node, (&workspace, site), request.run, cancel).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::node::NodeManifest;

    #[test]
    fn what_takes_turns_begins_first() {
        let spec = |name: &str, roles: &[Role]| {
            let annotations = [("metalform.dev/ssh-host".to_owned(), "192.0.2.1".to_owned())].into();
            let mut manifest = NodeManifest::default();
            (manifest.metadata.name, manifest.metadata.annotations) = (Some(name.to_owned()), annotations);
            NodeSpec { roles: roles.iter().copied().collect(), ..NodeSpec::parse(&manifest).unwrap() }
        };
        let mut specs = [
            spec("a-worker", &[Role::Node]),
            spec("a-master", &[Role::Master]),
            spec("etcd-1", &[Role::Etcd]),
            spec("first", &[Role::Bootstrap, Role::Master]),
        ];
        specs.sort_by_key(|spec| (rank(spec), spec.name.clone()));
        let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
        assert_eq!(names, ["etcd-1", "first", "a-master", "a-worker"]);
        let voting = spec("first", &[Role::Bootstrap, Role::Etcd, Role::Master]);
        assert!(rank(&voting) < rank(&spec("etcd-1", &[Role::Etcd])));
    }
}
