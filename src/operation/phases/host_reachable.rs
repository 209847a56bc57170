//! The host of a node that is removed answers over SSH, unless it is gone.

use super::reachable::Reachable;
use crate::operation::contract::{Phase, PhaseStatus, Scene};
use crate::operation::removal_goal::RemoveGoal;
use crate::operation::remove::RemoveOperation;

/// As [`Reachable`], but not for an offline removal.
#[derive(Debug)]
pub struct HostReachable;

impl Phase<RemoveOperation> for HostReachable {
    fn title(&self) -> &'static str {
        Phase::<RemoveOperation>::title(&Reachable)
    }

    fn applies(&self, goal: &RemoveGoal) -> bool {
        !goal.offline
    }

    fn status(&self, scene: &Scene<'_, RemoveOperation>) -> PhaseStatus {
        Reachable.status(scene)
    }
}
