//! No other node uses the mirror any more.

use std::sync::Arc;

use super::apiserver_proxies::proxies_current;
use crate::model::role::Role;
use crate::operation::contract::{Phase, PhaseStatus, Scene, seen};
use crate::operation::effect::Look;
use crate::operation::removal_goal::RemoveGoal;
use crate::operation::remove::RemoveOperation;

/// Before its server stops. That of a master is withdrawn with its API server.
#[derive(Debug)]
pub struct MirrorWithdrawn;

impl Phase<RemoveOperation> for MirrorWithdrawn {
    fn title(&self) -> &'static str {
        "Mirror withdrawn"
    }

    fn applies(&self, goal: &RemoveGoal) -> bool {
        goal.node.has(Role::Mirror) && !goal.node.has(Role::Master)
    }

    fn status(&self, scene: &Scene<'_, RemoveOperation>) -> PhaseStatus {
        let peers = seen!(scene.node().peers, Look::Peers);
        proxies_current(scene, peers, &Arc::new(peers.clone()))
    }
}
