//! What phases that apply states have in common.

use std::net::IpAddr;
use std::sync::Arc;

use crate::operation::contract::{Blocker, NodeOperation, PhaseStatus, Scene};
use crate::operation::effect::{Action, Look};
use crate::operation::inputs::NodeInputs;
use crate::operation::layer::Layer;
use crate::operation::observed::layer_plan::LayerPlan;
use crate::operation::preflight;
use crate::resource::contract::change::Difference;

/// Nothing on the host differs from the states of a layer; `Err` is what comes before.
pub(super) fn applied<O: NodeOperation>(scene: &Scene<'_, O>, layer: Layer) -> Result<(), PhaseStatus> {
    let Some(plan) = scene.host().plans.get(&layer) else {
        return Err(PhaseStatus::Look(Look::Plan(layer, inputs(scene)?)));
    };
    match plan {
        LayerPlan::Unchanged(_) => Ok(()),
        LayerPlan::Refused(refusals) => Err(PhaseStatus::Blocked(Blocker::Refused(refusals.clone()))),
        LayerPlan::Differs(plan) => {
            let changes = plan.changes();
            let ids: Vec<String> = changes.iter().map(|change| change.id.clone()).collect();
            let unforeseen = unforeseen(scene, &layer, &ids);
            if !unforeseen.is_empty() {
                return Err(PhaseStatus::Blocked(Blocker::Refused(unforeseen)));
            }
            let again: Vec<String> = changes
                .iter()
                .filter(|change| scene.host_begun().was_changed(&layer, &change.id))
                .map(|change| Difference::line(&change.id, &change.differences))
                .collect();
            if again.is_empty() {
                Err(PhaseStatus::Act(Action::Apply(layer, plan.clone())))
            } else {
                Err(PhaseStatus::Blocked(Blocker::StillDiffers(again)))
            }
        }
    }
}

/// Those of these resources that a saved plan does not change, with the reason. After the first thing that the run has done
/// on the host, more may follow from that: a package brings files, a file that was changed restarts a service.
fn unforeseen<O: NodeOperation>(
    scene: &Scene<'_, O>,
    layer: &Layer,
    ids: &[String],
) -> Vec<(String, String)> {
    match &scene.node_goal().foreseen {
        Some(foreseen) if !scene.host_begun().touched => {
            foreseen.exceeded_by(&scene.node_goal().roles, layer, ids)
        }
        _ => Vec::new(),
    }
}

/// The address of the node on the control plane.
pub(super) fn address<O: NodeOperation>(scene: &Scene<'_, O>) -> Result<IpAddr, PhaseStatus> {
    let Some(facts) = &scene.host().facts else { return Err(PhaseStatus::Look(Look::Facts)) };
    scene.node_goal().address(facts, scene.node().recorded_address()).map_err(|error| {
        PhaseStatus::Blocked(Blocker::Preflight(vec![preflight::address_failure(scene.node_goal(), &error)]))
    })
}

/// What the states of the node are rendered from, as it was observed.
pub(super) fn inputs<O: NodeOperation>(scene: &Scene<'_, O>) -> Result<Arc<NodeInputs>, PhaseStatus> {
    let Some(facts) = &scene.host().facts else { return Err(PhaseStatus::Look(Look::Facts)) };
    let Some(survey) = &scene.host().survey else { return Err(PhaseStatus::Look(Look::Survey)) };
    Ok(Arc::new(NodeInputs {
        goal: scene.node_goal().clone(),
        address: address(scene)?,
        facts: facts.clone(),
        joined: survey.joined,
        node: scene.node().node.clone().flatten(),
        peers: scene.node().peers.clone().unwrap_or_default(),
        membership: scene.etcd().membership.clone(),
    }))
}
