//! Another API server is ready, before one stops or restarts.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::operation::class::FailureClass;
use crate::operation::condition::Condition;
use crate::operation::contract::{NodeOperation, PhaseStatus, Scene};
use crate::operation::effect::{Look, LookKey};
use crate::operation::observed::node::Peer;

/// One of these peers has an API server that is ready, if any of them has one; `Err` is what comes before.
pub(super) fn another_ready<O: NodeOperation>(
    scene: &Scene<'_, O>,
    peers: &BTreeMap<String, Peer>,
) -> Result<(), PhaseStatus> {
    let others: BTreeMap<_, _> =
        peers.iter().filter_map(|(name, peer)| Some((name.clone(), peer.api_server_address()?))).collect();
    if others.is_empty() {
        return Ok(());
    }
    let servers = scene.cluster().api_servers.as_ref();
    let servers = servers.ok_or_else(|| PhaseStatus::Look(Look::ApiServers(others)))?;
    if servers.values().any(Option::is_none) {
        return Ok(());
    }
    let complaints = servers
        .iter()
        .map(|(name, complaint)| format!("{name}: {}", complaint.as_deref().unwrap_or_default()));
    Err(PhaseStatus::wait(Condition {
        sentence: "another API server to be ready".to_owned(),
        class: FailureClass::Api,
        last_seen: complaints.collect::<Vec<_>>().join("; "),
        limit: Duration::from_secs(120),
        looks: vec![LookKey::ApiServers, LookKey::Peers],
        causes: Vec::new(),
        hopeless: None,
    }))
}
