//! No proxy uses the API server of the node any more.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::apiserver_proxies::proxies_current;
use crate::model::api_contract::API_SERVER;
use crate::model::role::Role;
use crate::operation::class::FailureClass;
use crate::operation::condition::Condition;
use crate::operation::contract::{Phase, PhaseStatus, Scene, seen};
use crate::operation::effect::{Action, Look, LookKey};
use crate::operation::observed::node::Peer;
use crate::operation::removal_goal::RemoveGoal;
use crate::operation::remove::RemoveOperation;

/// It is withdrawn before it stops, and only while another one is ready.
#[derive(Debug)]
pub struct ApiServerWithdrawn;

impl Phase<RemoveOperation> for ApiServerWithdrawn {
    fn title(&self) -> &'static str {
        "API server withdrawn"
    }

    fn applies(&self, goal: &RemoveGoal) -> bool {
        goal.node.has(Role::Master)
    }

    fn status(&self, scene: &Scene<'_, RemoveOperation>) -> PhaseStatus {
        let Some(node) = seen!(scene.node().node, Look::Node) else { return PhaseStatus::Holds };
        let peers = seen!(scene.node().peers, Look::Peers);
        if node.annotations.contains_key(API_SERVER) {
            return withdraw(scene, peers);
        }
        proxies_current(scene, peers, &Arc::new(peers.clone()))
    }
}

fn withdraw(scene: &Scene<'_, RemoveOperation>, peers: &BTreeMap<String, Peer>) -> PhaseStatus {
    let others = peers.iter().filter_map(|(name, peer)| Some((name.clone(), peer.api_server_address()?)));
    let servers = seen!(scene.cluster().api_servers, Look::ApiServers(others.collect()));
    if servers.values().any(Option::is_none) {
        return PhaseStatus::Act(Action::WithdrawApiServer);
    }
    let complaints = servers
        .iter()
        .map(|(name, complaint)| format!("{name}: {}", complaint.as_deref().unwrap_or_default()));
    PhaseStatus::wait(Condition {
        sentence: "another API server to be ready".to_owned(),
        class: FailureClass::Api,
        last_seen: complaints.collect::<Vec<_>>().join("; "),
        limit: Duration::from_secs(120),
        looks: vec![LookKey::ApiServers, LookKey::Peers],
        causes: Vec::new(),
        hopeless: None,
    })
}
