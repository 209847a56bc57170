//! The host is of no node that the cluster uses.

use super::layer_applied::address;
use super::membership::members;
use crate::model::api_contract::API_SERVER;
use crate::model::role::Role;
use crate::operation::contract::{Blocker, NodeOperation, Phase, PhaseStatus, Scene, seen};
use crate::operation::effect::Look;
use crate::operation::goal::peer_url;
use crate::operation::observed::node::NodeView;
use crate::operation::removal_goal::RemoveGoal;
use crate::operation::removal_refusal::{RemovalRefusal, of_another};

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
        found.extend(of_another(goal, (facts, survey), node.as_ref(), peers.iter()));
        if !scene.goal.kubelet_stopped && node.as_ref().is_some_and(|node| node.ready) {
            found.push(RemovalRefusal::InUse);
        }
        let serves = |node: &NodeView| node.annotations.contains_key(API_SERVER);
        if survey.control_plane && node.as_ref().is_some_and(serves) {
            found.push(RemovalRefusal::ApiServer);
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
