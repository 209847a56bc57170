//! What the kubelet's serving certificate is requested for, and what its signer checks.

use super::layer_applied::address;
use crate::kube_api::node_addresses::{address_annotations, node_addresses};
use crate::operation::contract::{NodeOperation, PhaseStatus, Scene};
use crate::operation::effect::{Action, Look};

/// The Node has its addresses, in annotations and in its status; `Err` is what comes before.
///
/// A kubelet with `--cloud-provider=external` requests its serving certificate for the addresses of the status as soon
/// as it registers, and the signer denies addresses that are not recorded in the Node's annotations.
pub(super) fn addresses_recorded<O: NodeOperation>(scene: &Scene<'_, O>) -> Result<(), PhaseStatus> {
    let Some(facts) = &scene.host().facts else { return Err(PhaseStatus::Look(Look::Facts)) };
    let Some(node) = &scene.node().node else { return Err(PhaseStatus::Look(Look::Node)) };
    let node = node.clone().unwrap_or_default();
    let goal = scene.node_goal();
    let control_plane = address(scene)?;
    let workload_plane = goal.workload_address(facts).map_or(control_plane, |(_, address)| address);
    let status = node_addresses(&goal.name, [control_plane, workload_plane], facts, &goal.networks);
    let annotated = address_annotations(control_plane, workload_plane, &status)
        .iter()
        .all(|(key, value)| node.annotations.get(key) == Some(value));
    if annotated && node.addresses == status {
        return Ok(());
    }
    Err(PhaseStatus::Act(Action::RecordAddresses { control_plane, workload_plane, status }))
}
