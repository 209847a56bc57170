//! What a kubelet needs before it requests its first certificate.

use super::addresses_recorded::addresses_recorded;
use crate::kube_api::nodes::Capacity;
use crate::operation::contract::{NodeOperation, PhaseStatus, Scene};
use crate::operation::effect::{Action, Look};

/// The Node has its addresses and a capacity, and there is a token of this run; `Err` is what comes before. A kubelet that has its
/// certificate needs only the addresses.
///
/// A kubelet admits pods by the Node of the API where there is one. A Node that an operator wrote has no capacity,
/// and a static pod that is refused for want of it is not tried again.
pub(super) fn token<O: NodeOperation>(scene: &Scene<'_, O>) -> Result<(), PhaseStatus> {
    let Some(facts) = &scene.host().facts else { return Err(PhaseStatus::Look(Look::Facts)) };
    let Some(survey) = &scene.host().survey else { return Err(PhaseStatus::Look(Look::Survey)) };
    let Some(node) = &scene.node().node else { return Err(PhaseStatus::Look(Look::Node)) };
    addresses_recorded(scene)?;
    if survey.joined {
        return Ok(());
    }
    if node.as_ref().is_some_and(|node| !node.has_capacity) && !scene.node_begun().capacity {
        return Err(PhaseStatus::Act(Action::SetCapacity(Capacity {
            cpus: facts.cpus,
            memory: facts.memory,
            storage: facts.disk_free,
            pods: scene.node_goal().max_pods,
        })));
    }
    if !scene.node_begun().join_token {
        return Err(PhaseStatus::Act(Action::CreateJoinToken));
    }
    Ok(())
}
