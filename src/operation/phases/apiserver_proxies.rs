//! Every node knows every API server, in its proxy, and every mirror.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::layer_applied::{address, applied};
use crate::model::api_contract::API_SERVER;
use crate::model::role::Role;
use crate::operation::contract::{NodeOperation, Phase, PhaseStatus, Scene, seen};
use crate::operation::effect::{Action, Look, LookKey};
use crate::operation::layer::Layer;
use crate::operation::observed::node::Peer;
use crate::operation::observed::proxy::ProxyView;

/// A node that cannot be reached or updated does not stop it: its proxy works, and is updated when the node is next
/// deployed. What was written is looked at again with the nodes as they are then: two masters that update one proxy at
/// the same time may write it in either order.
#[derive(Debug)]
pub struct ApiServerProxies;

impl<O: NodeOperation> Phase<O> for ApiServerProxies {
    fn title(&self) -> &'static str {
        "API server proxies"
    }

    fn applies(&self, goal: &O::Goal) -> bool {
        goal.as_ref().has(Role::Master)
    }

    /// Where a role was withdrawn, they were looked at before the node had what it has now.
    fn looks_again(&self) -> Vec<LookKey> {
        vec![LookKey::Proxies]
    }

    fn status(&self, scene: &Scene<'_, O>) -> PhaseStatus {
        others_current(scene)
    }
}

/// Where this run has changed nothing, the node served before the other runs of the command began: each of these has it
/// on its own node, which is not looked at a second time.
pub(super) fn others_current<O: NodeOperation>(scene: &Scene<'_, O>) -> PhaseStatus {
    let peers = seen!(scene.node().peers, Look::Peers);
    let nodes = match all_nodes(scene, peers) {
        Ok(nodes) => nodes,
        Err(first) => return first,
    };
    if let Err(first) = applied(scene, Layer::Proxy) {
        return first;
    }
    if scene.host_begun().touched || scene.node_begun().api_server_unrecorded {
        return proxies_current(scene, peers, &nodes);
    }
    let beside = &scene.node_goal().beside;
    let others = peers.iter().filter(|(name, _)| !beside.iter().any(|node| node.as_str() == **name));
    let others = others.map(|(name, peer)| (name.clone(), peer.clone())).collect();
    proxies_current(scene, &others, &nodes)
}

/// The peers, and the node itself with the roles that it shall have; `Err` is what comes before.
pub(super) fn all_nodes<O: NodeOperation>(
    scene: &Scene<'_, O>,
    peers: &BTreeMap<String, Peer>,
) -> Result<Arc<BTreeMap<String, Peer>>, PhaseStatus> {
    let Some(node) = &scene.node().node else { return Err(PhaseStatus::Look(Look::Node)) };
    let label = |role: &Role| (role.label(), String::new());
    let own = Peer {
        labels: scene.node_goal().roles.iter().map(label).collect(),
        machine_id: node.as_ref().map(|node| node.machine_id.clone()).unwrap_or_default(),
        control_plane_ip: Some(address(scene)?),
        api_server: node.as_ref().is_some_and(|node| node.annotations.contains_key(API_SERVER)),
        ..Peer::default()
    };
    let mut nodes = peers.clone();
    nodes.insert(scene.node_goal().name.to_string(), own);
    Ok(Arc::new(nodes))
}

/// These peers know the API servers and the mirrors of these nodes, as far as they can be reached.
pub(super) fn proxies_current<O: NodeOperation>(
    scene: &Scene<'_, O>,
    peers: &BTreeMap<String, Peer>,
    nodes: &Arc<BTreeMap<String, Peer>>,
) -> PhaseStatus {
    let deployed =
        peers.iter().filter(|(_, peer)| peer.control_plane_ip.is_some() && !peer.machine_id.is_empty());
    let missing: Vec<PhaseStatus> = deployed
        .filter_map(|(name, _)| match scene.cluster().proxies.get(name) {
            None => Some(PhaseStatus::Look(Look::Proxy(name.clone(), nodes.clone()))),
            Some(ProxyView::Stale(plan)) => {
                Some(PhaseStatus::Act(Action::UpdateProxy(name.clone(), plan.clone())))
            }
            Some(ProxyView::Current | ProxyView::Unreachable(_)) => None,
        })
        .collect();
    if missing.is_empty() { PhaseStatus::Holds } else { PhaseStatus::All(missing) }
}
