//! Another API server is ready, before one stops or restarts; before one restarts, those that should be are.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::operation::class::FailureClass;
use crate::operation::condition::Condition;
use crate::operation::contract::{Blocker, NodeOperation, PhaseStatus, Scene};
use crate::operation::effect::{Look, LookKey};
use crate::operation::observed::node::Peer;
use crate::operation::removal_refusal::RemovalRefusal;

/// One of these peers has an API server that proxies may use; `Err` ends the run. Each run looks at the peers again
/// after it has withdrawn its own, so that of several at the same time at least one finds that it was the last.
pub(super) fn another_left(peers: &BTreeMap<String, Peer>) -> Result<(), PhaseStatus> {
    if peers.values().any(|peer| peer.api_server_address().is_some()) {
        return Ok(());
    }
    let last = RemovalRefusal::LastMaster { masters: 0, removed: 0 };
    Err(PhaseStatus::Blocked(Blocker::Removal(vec![last])))
}

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

/// The API servers of these peers that are not ready although their nodes are, with what was seen; none before they were
/// looked at. What broke them may break this one too. One whose host is away keeps no other from changing.
pub(super) fn broken<O: NodeOperation>(scene: &Scene<'_, O>, peers: &BTreeMap<String, Peer>) -> Vec<String> {
    let is_ready = |name: &str| peers.get(name).is_some_and(|peer| peer.ready);
    let servers = scene.cluster().api_servers.iter().flatten().filter(|(name, _)| is_ready(name));
    servers.filter_map(|(name, complaint)| Some(format!("{name}: {}", complaint.as_ref()?))).collect()
}

/// They are repaired by operations on their own nodes, which need the lease.
pub(super) fn repaired(broken: &[String]) -> PhaseStatus {
    PhaseStatus::wait(Condition {
        sentence: "every other API server on a Ready node to be ready".to_owned(),
        class: FailureClass::Api,
        last_seen: broken.join("; "),
        limit: Duration::from_secs(120),
        looks: vec![LookKey::Lease, LookKey::ApiServers, LookKey::Peers, LookKey::Pods],
        causes: Vec::new(),
        hopeless: None,
    })
}
