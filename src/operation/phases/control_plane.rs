//! The node's API server, controller manager and scheduler are ready.

use super::another_api_server::{another_ready, broken, repaired};
use super::layer_applied::applied;
use super::membership::{api_server_endpoints, lease};
use super::pods_ready::{pods_ready, these_ready};
use crate::kube_api::pods::ExpectedPod;
use crate::model::api_contract::API_SERVER;
use crate::model::role::Role;
use crate::operation::contract::{NodeOperation, Phase, PhaseStatus, Scene, seen};
use crate::operation::effect::{Action, Look};
use crate::operation::layer::Layer;
use crate::operation::observed::node::NodeView;

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
        let started = api_server_endpoints(scene).and_then(|()| in_turn(scene));
        if let Err(first) = started.and_then(|()| pods_ready(scene)) {
            return first;
        }
        let node = seen!(scene.node().node, Look::Node);
        if node.as_ref().is_none_or(|node| !node.annotations.contains_key(API_SERVER)) {
            return PhaseStatus::Act(Action::MarkApiServerReady);
        }
        if scene.etcd_begun().lease { PhaseStatus::Act(Action::ReleaseLease) } else { PhaseStatus::Holds }
    }
}

/// The static pods are on the host. An API server that serves is restarted under the lease on etcd membership, so that no
/// other one restarts meanwhile, and while another one is ready, if there is one. One that is ready stays while others are
/// broken, without the lease: what another node has restarted with may be what breaks them.
pub(super) fn in_turn<O: NodeOperation>(scene: &Scene<'_, O>) -> Result<(), PhaseStatus> {
    let serves =
        |node: &Option<NodeView>| node.as_ref().is_some_and(|node| node.annotations.contains_key(API_SERVER));
    let action = match applied(scene, Layer::ControlPlane) {
        Err(PhaseStatus::Act(action)) if scene.node().node.as_ref().is_some_and(serves) => action,
        other => return other,
    };
    let (held, take) = (scene.etcd_begun().lease, lease(scene));
    // While another run has the lease, its API server may restart. It may be lost while a member restarts.
    if scene.etcd().lease.is_none() || !held && !matches!(take, PhaseStatus::Act(_)) {
        return Err(take);
    }
    let peers = scene.node().peers.as_ref().ok_or(PhaseStatus::Look(Look::Peers))?;
    another_ready(scene, peers)?;
    let broken = broken(scene, peers);
    if !broken.is_empty() && serves_well(scene)? {
        return Err(if held { PhaseStatus::Act(Action::ReleaseLease) } else { repaired(&broken) });
    }
    Err(if held { PhaseStatus::Act(action) } else { take })
}

/// Whether the node's own API server does not wait to be repaired. It is not ready for a moment after its member restarts.
fn serves_well<O: NodeOperation>(scene: &Scene<'_, O>) -> Result<bool, PhaseStatus> {
    if scene.host_begun().restarted_member() {
        return Ok(true);
    }
    match these_ready(scene, vec![ExpectedPod::Static("kube-apiserver".to_owned())]) {
        Ok(()) => Ok(true),
        Err(PhaseStatus::Wait(_)) => Ok(false),
        Err(first) => Err(first),
    }
}

/// The API server of a node that is to have no etcd member uses those of other nodes, and is ready; `Err` is what comes
/// before. The member beside it may leave then: it was the only one that the API server used.
pub(super) fn own_member_unused<O: NodeOperation>(scene: &Scene<'_, O>) -> Result<(), PhaseStatus> {
    api_server_endpoints(scene)?;
    applied(scene, Layer::ControlPlaneFiles)?;
    in_turn(scene)?;
    these_ready(scene, vec![ExpectedPod::Static("kube-apiserver".to_owned())])
}
