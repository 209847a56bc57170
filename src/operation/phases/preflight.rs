//! The host is fit to be this node.

use crate::operation::contract::{Blocker, NodeOperation, Phase, PhaseStatus, Scene, seen};
use crate::operation::effect::Look;
use crate::operation::preflight::failures;

/// Nothing on the host is changed before this holds.
#[derive(Debug)]
pub struct Preflight;

impl<O: NodeOperation> Phase<O> for Preflight {
    fn title(&self) -> &'static str {
        "Preflight"
    }

    fn status(&self, scene: &Scene<'_, O>) -> PhaseStatus {
        let goal = scene.node_goal();
        let facts = (seen!(scene.host().facts, Look::Facts), scene.host().received);
        let survey = seen!(scene.host().survey, Look::Survey);
        // The API may be what the first node is to bring back.
        let found = if goal.first {
            failures(goal, facts, survey, (None, None), std::iter::empty())
        } else {
            let node = seen!(scene.node().node, Look::Node).as_ref();
            let peers = seen!(scene.node().peers, Look::Peers);
            failures(goal, facts, survey, (node, scene.node().recorded_address()), peers.iter())
        };
        if found.is_empty() { PhaseStatus::Holds } else { PhaseStatus::Blocked(Blocker::Preflight(found)) }
    }
}
