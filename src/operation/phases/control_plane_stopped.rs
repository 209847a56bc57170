//! The API server, the controller manager and the scheduler of the node have ended.

use super::another_api_server::{another_left, another_ready};
use crate::operation::contract::{Phase, PhaseStatus, Scene, seen};
use crate::operation::effect::{Action, Look};
use crate::operation::removal_goal::RemoveGoal;
use crate::operation::remove::RemoveOperation;

/// They end by themselves, as long as their etcd member is there: the API server withdraws its address from the Service
/// `kubernetes`, and answers what it has been asked. Another API server is ready by then.
#[derive(Debug)]
pub struct ControlPlaneStopped;

impl Phase<RemoveOperation> for ControlPlaneStopped {
    fn title(&self) -> &'static str {
        "Control plane stopped"
    }

    fn applies(&self, goal: &RemoveGoal) -> bool {
        !goal.offline
    }

    fn status(&self, scene: &Scene<'_, RemoveOperation>) -> PhaseStatus {
        if !seen!(scene.host().survey, Look::Survey).control_plane {
            return PhaseStatus::Holds;
        }
        let peers = seen!(scene.node().peers, Look::Peers);
        // The one that was ready when this one was withdrawn may have failed since, or was withdrawn too.
        match another_left(peers).and_then(|()| another_ready(scene, peers)) {
            Ok(()) => PhaseStatus::Act(Action::StopControlPlane),
            Err(first) => first,
        }
    }
}
