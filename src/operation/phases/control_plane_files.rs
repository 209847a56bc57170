//! The images, certificates and configuration of the control plane are on the host.

use super::layer_applied::applied;
use super::membership::api_server_endpoints;
use crate::model::role::Role;
use crate::operation::contract::{NodeOperation, Phase, PhaseStatus, Scene};
use crate::operation::layer::Layer;

/// Everything but the static pods, while etcd matures.
#[derive(Debug)]
pub struct ControlPlaneFiles;

impl<O: NodeOperation> Phase<O> for ControlPlaneFiles {
    fn title(&self) -> &'static str {
        "Control plane files"
    }

    fn applies(&self, goal: &O::Goal) -> bool {
        goal.as_ref().has(Role::Master)
    }

    fn status(&self, scene: &Scene<'_, O>) -> PhaseStatus {
        match api_server_endpoints(scene).and_then(|()| applied(scene, Layer::ControlPlaneFiles)) {
            Ok(()) => PhaseStatus::Holds,
            Err(first) => first,
        }
    }
}
