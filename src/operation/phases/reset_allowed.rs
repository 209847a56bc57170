//! The host is of no node that the cluster uses.

use super::layer_applied::address;
use super::membership::members;
use crate::model::role::Role;
use crate::operation::contract::{Blocker, NodeOperation, Phase, PhaseStatus, Scene, seen};
use crate::operation::effect::Look;
use crate::operation::goal::peer_url;
use crate::operation::removal_goal::RemoveGoal;
use crate::operation::removal_refusal::RemovalRefusal;

/// Nothing is changed before this holds.
#[derive(Debug)]
pub struct ResetAllowed;

impl<O: NodeOperation<Goal = RemoveGoal>> Phase<O> for ResetAllowed {
    fn title(&self) -> &'static str {
        "Reset allowed"
    }

    fn status(&self, scene: &Scene<'_, O>) -> PhaseStatus {
        let facts = seen!(scene.host().facts, Look::Facts);
        let survey = seen!(scene.host().survey, Look::Survey);
        let node = seen!(scene.node().node, Look::Node);
        let peers = seen!(scene.node().peers, Look::Peers);
        let goal = scene.node_goal();
        let mut found = Vec::new();
        if goal.first || goal.has(Role::Bootstrap) {
            found.push(RemovalRefusal::Bootstrap);
        }
        let [theirs, ours] =
            [&survey.authority, &goal.authority].map(|authority| authority.as_deref().map(str::trim));
        if theirs.is_some() && theirs != ours {
            found.push(RemovalRefusal::OtherCluster);
        }
        let same = peers
            .iter()
            .find(|(_, peer)| !facts.machine_id.is_empty() && peer.machine_id == facts.machine_id);
        found.extend(same.map(|(name, _)| RemovalRefusal::HostOf(name.clone())));
        if !scene.goal.kubelet_stopped && node.as_ref().is_some_and(|node| node.ready) {
            found.push(RemovalRefusal::InUse);
        }
        if found.is_empty() && survey.has_member() {
            let own = match (address(scene), members(scene)) {
                (Ok(own), Ok(membership)) => (peer_url(own), membership),
                (Err(first), _) | (_, Err(first)) => return first,
            };
            let listed = own.1.members.iter().any(|member| member.peer_urls.contains(&own.0));
            found.extend(listed.then_some(RemovalRefusal::Member(own.0)));
        }
        if found.is_empty() { PhaseStatus::Holds } else { PhaseStatus::Blocked(Blocker::Removal(found)) }
    }
}
