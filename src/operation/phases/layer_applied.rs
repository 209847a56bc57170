//! What phases that apply states have in common.

use crate::operation::layer::Layer;
use crate::operation::phase::{Action, Blocker, Look, Next};
use crate::operation::world::World;

/// The host is what a layer's states say; `Err` is what has to come first.
pub fn applied(world: &World, layer: Layer) -> Result<(), Next> {
    let Some(plan) = world.plans.get(&layer) else { return Err(Next::Look(Look::Plan(layer))) };
    if !plan.refused.is_empty() {
        return Err(Next::Blocked(Blocker::Refused(plan.refused.clone())));
    }
    let again: Vec<String> =
        plan.changes.iter().map(|(id, _)| id).filter(|id| world.was_changed(&layer, id)).cloned().collect();
    if !again.is_empty() {
        return Err(Next::Blocked(Blocker::StillDiffers(again)));
    }
    if plan.changes.is_empty() { Ok(()) } else { Err(Next::Act(Action::Apply(layer))) }
}
