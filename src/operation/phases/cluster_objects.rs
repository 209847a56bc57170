//! The API has the cluster's own objects, and the Node of the bootstrap node.

use super::kubelet_token::token;
use super::layer_applied::{address, inputs};
use crate::model::api_contract::API_SERVER;
use crate::model::node::is_bare;
use crate::model::role::Role;
use crate::operation::contract::{BootstrapNodeOperation, Phase, PhaseStatus, Scene};
use crate::operation::effect::{Action, Look};
use crate::operation::observed::node::NodeView;

/// Ends with the kubelet able to request its certificate.
#[derive(Debug)]
pub struct ClusterObjects;

impl<O: BootstrapNodeOperation> Phase<O> for ClusterObjects {
    fn title(&self) -> &'static str {
        "Cluster objects"
    }

    fn status(&self, scene: &Scene<'_, O>) -> PhaseStatus {
        match objects(scene) {
            Ok(()) => PhaseStatus::Holds,
            Err(first) => first,
        }
    }
}

/// The Node of the bootstrap node, with what an operator would have written; `Err` is what comes before.
pub(super) fn registered<'a, O: BootstrapNodeOperation>(
    scene: &Scene<'a, O>,
) -> Result<&'a NodeView, PhaseStatus> {
    let Some(node) = &scene.node().node else { return Err(PhaseStatus::Look(Look::Node)) };
    match node.as_ref().filter(|node| !is_bare(&node.annotations)) {
        Some(node) => Ok(node),
        None => Err(PhaseStatus::Act(Action::RegisterNode(address(scene)?))),
    }
}

fn objects<O: BootstrapNodeOperation>(scene: &Scene<'_, O>) -> Result<(), PhaseStatus> {
    let Some(survey) = &scene.host().survey else { return Err(PhaseStatus::Look(Look::Survey)) };
    let node = registered(scene)?;
    if scene.node_goal().has(Role::Master) && !node.annotations.contains_key(API_SERVER) {
        return Err(PhaseStatus::Act(Action::MarkApiServerReady));
    }
    let Some(missing) = &scene.bootstrap().missing_objects else {
        return Err(PhaseStatus::Look(Look::Objects(inputs(scene)?)));
    };
    if !missing.is_empty() {
        return Err(PhaseStatus::Act(Action::ApplyObjects(missing.clone(), inputs(scene)?)));
    }
    token(scene)?;
    if !survey.joined && !scene.host_begun().kubelet_restarted {
        return Err(PhaseStatus::Act(Action::RestartKubelet));
    }
    Ok(())
}
