//! Nothing of Kubernetes runs on the host any more.

use crate::operation::contract::{NodeOperation, Phase, PhaseStatus, Scene, seen};
use crate::operation::effect::{Action, Look};
use crate::operation::removal_goal::RemoveGoal;

/// Done in each run: it is idempotent, and takes one round trip. On a host that metalform has not changed, what runs is
/// not its own.
#[derive(Debug)]
pub struct NodeStopped;

impl<O: NodeOperation<Goal = RemoveGoal>> Phase<O> for NodeStopped {
    fn title(&self) -> &'static str {
        "Node stopped"
    }

    fn applies(&self, goal: &RemoveGoal) -> bool {
        !goal.offline
    }

    fn status(&self, scene: &Scene<'_, O>) -> PhaseStatus {
        let untouched = !scene.goal.dedicated && seen!(scene.host().survey, Look::Survey).untouched;
        if untouched || scene.host_begun().node_stopped {
            return PhaseStatus::Holds;
        }
        PhaseStatus::Act(Action::StopNode)
    }
}
