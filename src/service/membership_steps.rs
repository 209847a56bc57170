//! How the voters of etcd change over a plan for several nodes: each node plans for itself, and the changes come one at a
//! time.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::operation_report::{NodeReport, NodeWork};
use crate::etcd::membership::MembershipChange;
use crate::etcd::quorum::quorum;
use crate::model::name::HostName;
use crate::operation::effect::Action;

/// One change of the number of voters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MembershipStep {
    /// The node whose member gains or loses its vote.
    pub node: HostName,
    /// Voters before it.
    pub voters_before: usize,
    /// Voters after it.
    pub voters_after: usize,
    /// How many must agree before it.
    pub quorum_before: usize,
    /// How many must agree after it.
    pub quorum_after: usize,
}

impl fmt::Display for MembershipStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.voters_after > self.voters_before { "joins" } else { "leaves" };
        let Self { node, voters_before, voters_after, quorum_before, quorum_after } = self;
        write!(
            f,
            "{node} {verb}: {voters_before} -> {voters_after}, quorum {quorum_before} -> {quorum_after}"
        )
    }
}

/// The steps of these plans, in the order of the nodes' names, members that leave for good last; a real run has the same
/// steps in an order of its own.
pub fn membership_steps(nodes: &[NodeReport]) -> Vec<MembershipStep> {
    let (leaving, others): (Vec<_>, Vec<_>) = nodes.iter().partition(|node| leaves(node));
    let mut voters = None;
    let mut steps = Vec::new();
    for node in others.into_iter().chain(leaving) {
        for action in planned(node) {
            let Action::ChangeMembership(change, observed) = action else { continue };
            let before = *voters.get_or_insert_with(|| observed.voters().count());
            let after = match change {
                MembershipChange::Promote { .. } => before + 1,
                MembershipChange::Replace { voter: true, .. }
                | MembershipChange::Retire { voter: true, .. } => before.saturating_sub(1),
                _ => continue,
            };
            steps.push(MembershipStep {
                node: node.name.clone(),
                voters_before: before,
                voters_after: after,
                quorum_before: quorum(before),
                quorum_after: quorum(after),
            });
            voters = Some(after);
        }
    }
    steps
}

fn leaves(node: &NodeReport) -> bool {
    planned(node).any(|action| matches!(action, Action::ChangeMembership(MembershipChange::Retire { .. }, _)))
}

fn planned(node: &NodeReport) -> impl Iterator<Item = &Action> {
    let phases = match &node.work {
        NodeWork::Planned(preview) => preview.phases.as_slice(),
        NodeWork::Done(_) => &[],
    };
    phases.iter().flat_map(|phase| &phase.actions).map(|planned| &planned.action)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::etcd::simulation::{leading, membership, voter};
    use crate::operation::dry_run::{PhasePreview, PlannedAction, Preview};

    fn node(name: &str, changes: Vec<MembershipChange>) -> NodeReport {
        let observed = Arc::new(membership(vec![leading(voter(1, "a"))]));
        let actions = changes.into_iter().map(|change| PlannedAction {
            action: Action::ChangeMembership(change, observed.clone()),
            changes: Vec::new(),
        });
        let phase = PhasePreview { title: "etcd voter", actions: actions.collect(), end: None };
        let work = NodeWork::Planned(Preview { phases: vec![phase], ..Preview::default() });
        NodeReport { name: name.parse().unwrap(), work, failure: None }
    }

    #[test]
    fn each_step_begins_where_the_one_before_it_ended() {
        let joins = || {
            vec![
                MembershipChange::AddLearner { peer_url: "https://192.0.2.2:2380".to_owned() },
                MembershipChange::Promote { id: 7 },
            ]
        };
        let nodes = [node("b", joins()), node("c", joins()), node("worker", Vec::new())];
        let steps: Vec<String> = membership_steps(&nodes)
            .into_iter()
            .map(|step| {
                let MembershipStep { node, voters_before, voters_after, quorum_before, quorum_after } = step;
                format!("{node}: {voters_before} {voters_after} {quorum_before} {quorum_after}")
            })
            .collect();
        assert_eq!(steps, ["b: 1 2 1 2", "c: 2 3 2 2"]);
    }
}
