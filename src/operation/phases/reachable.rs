//! The host answers over SSH.

use crate::operation::contract::{NodeOperation, Phase, PhaseStatus, Scene, seen};
use crate::operation::effect::Look;

/// Gathering the facts needs everything: connection, host key, key, sudo and shell.
#[derive(Debug)]
pub struct Reachable;

impl<O: NodeOperation> Phase<O> for Reachable {
    fn title(&self) -> &'static str {
        "Reachable"
    }

    fn status(&self, scene: &Scene<'_, O>) -> PhaseStatus {
        seen!(scene.host().facts, Look::Facts);
        PhaseStatus::Holds
    }
}
