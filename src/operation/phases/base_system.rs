//! Packages, runtime, pod network, API server proxy and kubelet are there and run.

use std::time::Duration;

use super::layer_applied::applied;
use crate::operation::goal::Goal;
use crate::operation::layer::Layer;
use crate::operation::phase::{Action, Condition, Look, Next, Phase};
use crate::operation::world::World;
use crate::seen;

/// Everything of the node that is neither etcd nor control plane.
#[derive(Debug)]
pub struct BaseSystem;

impl Phase for BaseSystem {
    fn title(&self) -> &'static str {
        "Base system"
    }

    fn next(&self, goal: &Goal, world: &World) -> Next {
        seen!(world.facts, Look::Facts);
        let survey = seen!(world.survey, Look::Survey);
        let node = seen!(world.node, Look::Node);
        if node.as_ref().is_none_or(|node| node.pod_cidr.is_none()) {
            return Next::Wait(Condition {
                sentence: format!("the controller manager to give {} a network for its pods", goal.name),
                last_seen: "the Node has no podCIDR".to_owned(),
                limit: Duration::from_secs(60),
                looks: vec![Look::Node],
            });
        }
        seen!(world.peers, Look::Peers);
        if !survey.joined && !world.join_token {
            return Next::Act(Action::CreateJoinToken);
        }
        match applied(world, Layer::Base) {
            Ok(()) => Next::Holds,
            Err(next) => next,
        }
    }
}
