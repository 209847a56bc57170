//! The order in which a recovery is carried out. Pure.

use super::recovery::RecoveryPlan;

/// What a recovery does, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryOrder<N> {
    /// Each begins when the one before it is done; one that fails is the last.
    pub steps: Vec<RecoveryStep<N>>,
    /// Nodes that are deployed after the last step, as always: each member joins behind the gate.
    pub deployed: Vec<N>,
}

/// A step of a recovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecoveryStep<N> {
    /// Stop all of these, side by side: no two members agree behind the one that continues.
    Stop(Vec<(N, Stopped)>),
    /// Make the member of this node the only one.
    Continue(N),
    /// Wait for the member of this node.
    AwaitEtcd(N),
    /// Wait for an API server that has this member.
    AwaitApi(N),
}

/// What is stopped on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// etcd and the control plane; the data of etcd is set aside.
    Member,
    /// The control plane, where other nodes' etcd was all it had.
    ControlPlane,
}

/// The order for a plan. `masters`: all nodes with an API server.
pub fn order<N: Clone + PartialEq>(plan: &RecoveryPlan<N>, masters: &[N]) -> RecoveryOrder<N> {
    let survivor = &plan.survivor.node;
    let members = || std::iter::once(&plan.survivor).chain(&plan.set_aside).chain(&plan.unreachable);
    let without_member = masters.iter().filter(|node| members().all(|member| member.node != **node));
    let control_planes = without_member.map(|node| (node.clone(), Stopped::ControlPlane));
    let stopped = plan.set_aside.iter().map(|member| (member.node.clone(), Stopped::Member));
    let stopped: Vec<(N, Stopped)> = stopped.chain(control_planes).collect();
    let others = stopped.iter().map(|(node, _)| node.clone());
    RecoveryOrder {
        deployed: std::iter::once(survivor.clone()).chain(others).collect(),
        steps: vec![
            RecoveryStep::Stop(stopped),
            RecoveryStep::Continue(survivor.clone()),
            RecoveryStep::AwaitEtcd(survivor.clone()),
            RecoveryStep::AwaitApi(survivor.clone()),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::super::recovery::{DiskState, MemberOnDisk};
    use super::*;

    fn member(node: &'static str) -> MemberOnDisk<&'static str> {
        MemberOnDisk { node, state: DiskState::Reached { pod: true, data: None } }
    }

    #[test]
    fn all_others_that_answer_are_stopped_before_one_continues() {
        let plan = RecoveryPlan {
            survivor: member("b"),
            set_aside: vec![member("a"), member("c")],
            unreachable: vec![member("d")],
        };
        let order = order(&plan, &["a", "b", "d", "master"]);
        let stopped = vec![("a", Stopped::Member), ("c", Stopped::Member), ("master", Stopped::ControlPlane)];
        let steps = [
            RecoveryStep::Stop(stopped),
            RecoveryStep::Continue("b"),
            RecoveryStep::AwaitEtcd("b"),
            RecoveryStep::AwaitApi("b"),
        ];
        assert_eq!(order.steps, steps);
        assert_eq!(order.deployed, ["b", "a", "c", "master"]);
    }
}
