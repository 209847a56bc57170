//! An API server without an etcd member beside it is given all voters. Where a command has changed the voters, it may have
//! been given those of before: its node is deployed again, or named in a warning.

use super::cluster_nodes;
use super::node_selection::NodeSelection;
use super::operation_report::{NodeReport, NodeWork};
use crate::model::node::NodeSpec;
use crate::model::role::Role;
use crate::workspace::layout::Layout;

/// Those of these Nodes that were deployed, maybe before the run of another node changed the voters.
pub(super) fn outdated(specs: &[NodeSpec], nodes: &[NodeReport]) -> Vec<NodeSpec> {
    let is_outdated = |spec: &&NodeSpec| {
        let holds = nodes.iter().any(|node| node.name == spec.name && node.failure.is_none());
        let mut others = nodes.iter().filter(|node| node.name != spec.name);
        lists_voters(spec) && holds && others.any(may_have_changed_voters)
    };
    // Its warnings were shown.
    specs.iter().filter(is_outdated).map(|spec| NodeSpec { warnings: Vec::new(), ..spec.clone() }).collect()
}

/// What a dry run says of them: their runs of this command show nothing of it.
pub(super) fn foretell(outdated: &[NodeSpec]) {
    if !outdated.is_empty() {
        let names: Vec<&str> = outdated.iter().map(|spec| spec.name.as_str()).collect();
        tracing::warn!(
            "at the end the API servers of these nodes restart, one at a time, with the new list of voters: {}",
            names.join(", ")
        );
    }
}

/// Warns where the runs of a command may have changed the voters, and it deploys not all Nodes that list them. A failure to
/// find them is none of the command's.
pub(super) async fn warn_of_others(layout: &Layout, nodes: &[NodeReport]) {
    if !nodes.iter().any(may_have_changed_voters) {
        return;
    }
    let Ok(all) = cluster_nodes::list(layout).await else { return };
    let others = others(&NodeSelection::All.among(&all).specs, nodes);
    if !others.is_empty() {
        let names = others.join(", ");
        tracing::warn!(
            "the API servers of these nodes may list earlier voters of etcd: {names}; run `metalform expand`"
        );
    }
}

/// Names of the Nodes that list voters, were deployed before, and are not the command's.
fn others(all: &[NodeSpec], nodes: &[NodeReport]) -> Vec<String> {
    let is_other = |spec: &&NodeSpec| {
        let deployed = spec.control_plane_ip.is_some();
        lists_voters(spec) && deployed && nodes.iter().all(|node| node.name != spec.name)
    };
    all.iter().filter(is_other).map(|spec| spec.name.to_string()).collect()
}

fn lists_voters(spec: &NodeSpec) -> bool {
    spec.roles.contains(&Role::Master) && !spec.roles.contains(&Role::Etcd)
}

fn may_have_changed_voters(node: &NodeReport) -> bool {
    match &node.work {
        NodeWork::Done(summary) => {
            summary.phases.iter().flat_map(|phase| &phase.actions).any(|action| action.voters)
        }
        NodeWork::Planned(preview) => {
            let mut planned = preview.phases.iter().flat_map(|phase| &phase.actions);
            planned.any(|planned| planned.action.may_change_voters())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::etcd::membership::MembershipChange;
    use crate::etcd::simulation::{leading, membership, voter};
    use crate::model::api_contract::SSH_HOST;
    use crate::model::node::{NodeManifest, NodeMetadata};
    use crate::model::resumption::ResumedBy;
    use crate::operation::driver::ActionRecord;
    use crate::operation::dry_run::{PhasePreview, PlannedAction, Preview};
    use crate::operation::effect::Action;
    use crate::operation::run::{PhaseRun, RunError, RunSummary};
    use crate::service::operation_failure::OperationFailure;

    fn spec(name: &str, roles: &[Role]) -> NodeSpec {
        let annotations = [(SSH_HOST.to_owned(), "192.0.2.1".to_owned())].into();
        let metadata = NodeMetadata { name: Some(name.to_owned()), annotations, ..NodeMetadata::default() };
        let spec = NodeSpec::parse(&NodeManifest { metadata, ..NodeManifest::default() }).unwrap();
        let control_plane_ip = Some([192, 0, 2, 1].into());
        NodeSpec { roles: roles.iter().copied().collect(), control_plane_ip, ..spec }
    }

    fn node(name: &str, actions: &[Action], error: Option<RunError>) -> NodeReport {
        let phase = PhaseRun {
            title: "etcd voter",
            began: Duration::ZERO,
            elapsed: Duration::ZERO,
            changed: actions.len(),
            actions: actions.iter().map(ActionRecord::from).collect(),
        };
        let summary =
            RunSummary { phases: vec![phase], changed: actions.len(), elapsed: Duration::from_secs(1) };
        let failure = error.map(|error| OperationFailure::Run {
            node: name.parse().unwrap(),
            error,
            without_host: None,
            by_manifest: false,
            resumed: ResumedBy::SameCommand,
        });
        NodeReport { name: name.parse().unwrap(), work: NodeWork::Done(summary), failure }
    }

    fn promote() -> Action {
        let observed = membership(vec![leading(voter(1, "a"))]);
        Action::ChangeMembership(MembershipChange::Promote { id: 7 }, Arc::new(observed))
    }

    fn specs() -> Vec<NodeSpec> {
        vec![
            spec("bootstrap", &[Role::Bootstrap, Role::Master, Role::Etcd]),
            spec("master-2", &[Role::Master]),
            spec("master-3", &[Role::Master]),
            spec("etcd-4", &[Role::Etcd]),
            spec("node-5", &[Role::Node]),
        ]
    }

    #[test]
    fn masters_without_etcd_are_deployed_again_once_the_voters_have_changed() {
        let calm = |name: &str| node(name, &[], None);
        let failed = || Some(RunError::Interrupted);
        for (nodes, expected) in [
            (vec![calm("master-2"), calm("master-3"), calm("etcd-4")], vec![]),
            (vec![calm("master-2"), calm("master-3"), node("etcd-4", &[Action::TakeLease], None)], vec![]),
            (
                vec![
                    calm("bootstrap"),
                    calm("master-2"),
                    calm("master-3"),
                    node("etcd-4", &[promote()], None),
                ],
                vec!["master-2", "master-3"],
            ),
            // It votes, whatever failed after that.
            (vec![calm("master-2"), node("etcd-4", &[promote()], failed())], vec!["master-2"]),
            (
                vec![node("master-2", &[], failed()), calm("master-3"), node("etcd-4", &[promote()], None)],
                vec!["master-3"],
            ),
            // The answer to the removal of its member was lost.
            (vec![node("master-2", &[Action::SetAsideMemberData], None), calm("master-3")], vec!["master-3"]),
        ] {
            let found = outdated(&specs(), &nodes);
            let found: Vec<&str> = found.iter().map(|spec| spec.name.as_str()).collect();
            assert_eq!(found, expected, "{nodes:?}");
        }
    }

    #[test]
    fn a_dry_run_counts_what_it_foresees() {
        let change = PlannedAction { action: promote(), changes: Vec::new() };
        let phase = PhasePreview { title: "etcd voter", actions: vec![change], end: None };
        let work = NodeWork::Planned(Preview { phases: vec![phase], ..Preview::default() });
        assert!(may_have_changed_voters(&NodeReport { work, ..node("etcd-4", &[], None) }));
        let nothing = NodeWork::Planned(Preview::default());
        assert!(!may_have_changed_voters(&NodeReport { work: nothing, ..node("etcd-4", &[], None) }));
    }

    #[test]
    fn masters_that_the_command_does_not_deploy_are_named() {
        let mut all = specs();
        assert_eq!(others(&all, &[node("etcd-4", &[promote()], None)]), ["master-2", "master-3"]);
        assert_eq!(others(&all, &[node("master-2", &[], None)]), ["master-3"]);
        // It has yet to be deployed for the first time.
        all[2].control_plane_ip = None;
        assert_eq!(others(&all, &[]), ["master-2"]);
    }
}
