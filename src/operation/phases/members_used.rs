//! Every API server keeps a member of etcd when the node's own leaves.

use crate::etcd::member::Membership;
use crate::etcd::removal::LeavingMember;
use crate::operation::contract::{NodeOperation, PhaseStatus, Scene};
use crate::operation::effect::Look;
use crate::operation::goal::client_url;
use crate::operation::observed::etcd_servers::EtcdServers;
use crate::operation::observed::node::Peer;
use crate::operation::removal_refusal::RemovalRefusal;

/// The API servers that list the node's own member, and no other voter that is healthy; `Err` is what comes before. An
/// API server lists the voters of its node's last deployment, or the member beside it alone: one that has joined may not
/// be listed yet. One on a Ready node that is not reached may be the only one that serves, and counts as well, unless it
/// has a member of its own.
pub(super) fn bereft<O: NodeOperation>(
    scene: &Scene<'_, O>,
    leaving: &LeavingMember,
    membership: &Membership,
) -> Result<Vec<RemovalRefusal>, PhaseStatus> {
    let Some(own) = leaving.listed(membership).filter(|member| !member.is_learner) else {
        return Ok(Vec::new());
    };
    let peers = scene.node().peers.as_ref().ok_or(PhaseStatus::Look(Look::Peers))?;
    let id = own.id;
    let others = move || membership.voters().filter(move |voter| voter.id != id);
    let has_own = |peer: &Peer| {
        let url = peer.etcd_address().map(client_url);
        url.is_some_and(|url| others().any(|voter| voter.client_urls.contains(&url)))
    };
    let (mut found, mut looks) = (Vec::new(), Vec::new());
    for (name, peer) in peers {
        if peer.api_server_address().is_none() {
            continue;
        }
        match scene.cluster().etcd_servers.get(name) {
            None => looks.push(PhaseStatus::Look(Look::EtcdServers(name.clone()))),
            Some(servers @ EtcdServers::Listed(_)) => {
                let keeps_one = others().any(|voter| voter.status().is_some() && servers.lists(voter));
                if servers.lists(own) && !keeps_one {
                    found.push(RemovalRefusal::ApiServerMember(name.clone()));
                }
            }
            Some(EtcdServers::Unknown(reason)) if peer.ready && !has_own(peer) => {
                found.push(RemovalRefusal::UnknownMembers { node: name.clone(), reason: reason.clone() });
            }
            Some(EtcdServers::Unknown(_)) => {}
        }
    }
    if looks.is_empty() { Ok(found) } else { Err(PhaseStatus::All(looks)) }
}
