//! The node's API server, controller manager and scheduler are ready.

use super::layer_applied::applied;
use super::membership::api_server_endpoints;
use super::pods_ready::pods_ready;
use crate::model::api_contract::API_SERVER;
use crate::model::role::Role;
use crate::operation::contract::{NodeOperation, Phase, PhaseStatus, Scene, seen};
use crate::operation::effect::{Action, Look};
use crate::operation::layer::Layer;

/// Ends with the API server recorded on the Node, so that proxies use it.
#[derive(Debug)]
pub struct ControlPlane;

impl<O: NodeOperation> Phase<O> for ControlPlane {
    fn title(&self) -> &'static str {
        "Control plane"
    }

    fn applies(&self, goal: &O::Goal) -> bool {
        goal.as_ref().has(Role::Master)
    }

    fn status(&self, scene: &Scene<'_, O>) -> PhaseStatus {
        let started = api_server_endpoints(scene).and_then(|()| applied(scene, Layer::ControlPlane));
        if let Err(first) = started.and_then(|()| pods_ready(scene)) {
            return first;
        }
        let node = seen!(scene.node().node, Look::Node);
        if node.as_ref().is_none_or(|node| !node.annotations.contains_key(API_SERVER)) {
            return PhaseStatus::Act(Action::MarkApiServerReady);
        }
        PhaseStatus::Holds
    }
}
