//! The order in which a recovery is carried out. Pure.

use super::recovery::{RecoveryPlan, RecoverySource};

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
    /// Verify that the same would be planned now: while the plan was read, quorum may have come back, and was written to
    /// since; or a host that was silent, whose member nothing stops. From here on something is stopped, for a member that
    /// must still be there.
    VerifyPlan,
    /// Read the snapshot: its file may be gone since it was verified.
    ReadSnapshot,
    /// Stop all of these, side by side: no two members agree behind the one that continues.
    Stop {
        /// The nodes.
        others: Vec<(N, Stopped)>,
        /// The node whose etcd their API servers continue with. Without one they stay away until they are deployed.
        api_servers: Option<N>,
    },
    /// Make the member of this node the only one.
    Continue(N),
    /// Wait for the member of this node.
    AwaitEtcd(N),
    /// Wait for an API server that has this member.
    AwaitApi(N),
}

impl<N> RecoveryStep<N> {
    /// As the title of a phase.
    pub fn title(&self) -> &'static str {
        match self {
            Self::VerifyPlan => "Plan verified",
            Self::ReadSnapshot => "Snapshot read",
            Self::Stop { .. } => "Others stopped",
            Self::Continue(_) => "Only member",
            Self::AwaitEtcd(_) => "etcd answers",
            Self::AwaitApi(_) => "API answers",
        }
    }
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
    // Where no API server is beside the member that continues, those of others must serve for any node to be deployed.
    let api_servers = (!masters.contains(survivor)).then(|| survivor.clone());
    let others = stopped.iter().map(|(node, _)| node.clone());
    let deployed = std::iter::once(survivor.clone()).chain(others).collect();
    let snapshot = (plan.source == RecoverySource::Snapshot).then_some(RecoveryStep::ReadSnapshot);
    let done = [
        RecoveryStep::Stop { others: stopped, api_servers },
        RecoveryStep::Continue(survivor.clone()),
        RecoveryStep::AwaitEtcd(survivor.clone()),
        RecoveryStep::AwaitApi(survivor.clone()),
    ];
    RecoveryOrder {
        deployed,
        steps: [RecoveryStep::VerifyPlan].into_iter().chain(snapshot).chain(done).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::recovery::{DiskState, MemberOnDisk};
    use super::*;

    fn member(node: &'static str) -> MemberOnDisk<&'static str> {
        MemberOnDisk { node, state: DiskState::Reached { pod: None, data: None } }
    }

    fn plan() -> RecoveryPlan<&'static str> {
        RecoveryPlan {
            source: RecoverySource::Member,
            survivor: member("b"),
            set_aside: vec![member("a"), member("c")],
            unreachable: vec![member("d")],
        }
    }

    #[test]
    fn all_others_that_answer_are_stopped_before_one_continues() {
        let order = super::order(&plan(), &["a", "b", "d", "master"]);
        let others = vec![("a", Stopped::Member), ("c", Stopped::Member), ("master", Stopped::ControlPlane)];
        let mut steps = vec![
            RecoveryStep::VerifyPlan,
            RecoveryStep::Stop { others, api_servers: None },
            RecoveryStep::Continue("b"),
            RecoveryStep::AwaitEtcd("b"),
            RecoveryStep::AwaitApi("b"),
        ];
        assert_eq!(order.steps, steps);
        assert_eq!(order.deployed, ["b", "a", "c", "master"]);
        steps.insert(1, RecoveryStep::ReadSnapshot);
        let plan = RecoveryPlan { source: RecoverySource::Snapshot, ..plan() };
        assert_eq!(super::order(&plan, &["a", "b", "d", "master"]).steps, steps);
    }

    #[test]
    fn where_the_one_that_continues_has_no_api_server_those_of_others_get_its_etcd() {
        let others = vec![("a", Stopped::Member), ("c", Stopped::Member)];
        let stop = RecoveryStep::Stop { others, api_servers: Some("b") };
        assert!(order(&plan(), &["a"]).steps.contains(&stop));
    }
}
