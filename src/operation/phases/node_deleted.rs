//! The API has no Node of this name.

use crate::operation::contract::{Phase, PhaseStatus, Scene, seen};
use crate::operation::effect::{Action, Look};
use crate::operation::remove::RemoveOperation;

/// The last of all: until then, the Node has what a run needs to resume.
#[derive(Debug)]
pub struct NodeDeleted;

impl Phase<RemoveOperation> for NodeDeleted {
    fn title(&self) -> &'static str {
        "Node deleted"
    }

    fn status(&self, scene: &Scene<'_, RemoveOperation>) -> PhaseStatus {
        match seen!(scene.node().node, Look::Node) {
            Some(_) => PhaseStatus::Act(Action::DeleteNode),
            None => PhaseStatus::Holds,
        }
    }
}
