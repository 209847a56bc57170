//! No proxy uses the API server of the node any more.

use std::sync::Arc;

use super::another_api_server::{another_left, another_ready};
use super::apiserver_proxies::proxies_current;
use crate::model::api_contract::API_SERVER;
use crate::model::role::Role;
use crate::operation::contract::{Phase, PhaseStatus, Scene, seen};
use crate::operation::effect::{Action, Look, LookKey};
use crate::operation::remove::RemoveOperation;

/// It is withdrawn before it stops, and only while another one is ready. Where another run withdraws the other one at
/// the same moment, it is put back: no proxy was changed yet.
#[derive(Debug)]
pub struct ApiServerWithdrawn;

impl Phase<RemoveOperation> for ApiServerWithdrawn {
    fn title(&self) -> &'static str {
        "API server withdrawn"
    }

    /// While the node was drained, which may take minutes, another run may have withdrawn the other API servers.
    fn looks_again(&self) -> Vec<LookKey> {
        vec![LookKey::Node, LookKey::Peers, LookKey::ApiServers]
    }

    fn status(&self, scene: &Scene<'_, RemoveOperation>) -> PhaseStatus {
        let Some(node) = seen!(scene.node().node, Look::Node) else { return PhaseStatus::Holds };
        let marked = node.annotations.contains_key(API_SERVER);
        // The label may have gone before the API server has.
        let runs = !scene.goal.offline && seen!(scene.host().survey, Look::Survey).control_plane;
        if !marked && !runs && !scene.goal.node.has(Role::Master) {
            return PhaseStatus::Holds;
        }
        let peers = seen!(scene.node().peers, Look::Peers);
        match another_left(peers) {
            Ok(()) if marked => match another_ready(scene, peers) {
                Ok(()) => PhaseStatus::Act(Action::WithdrawApiServer),
                Err(first) => first,
            },
            Ok(()) => proxies_current(scene, peers, &Arc::new(peers.clone())),
            Err(_) if runs && !marked => PhaseStatus::Act(Action::MarkApiServerReady),
            Err(last) => last,
        }
    }
}
