//! The cluster can do without the node.

use super::member_removed::{leaving, voters_healthy};
use super::members_used::bereft;
use super::membership::members;
use crate::etcd::removal::{RemovalMove, next_removal};
use crate::operation::contract::{Blocker, Phase, PhaseStatus, Scene, seen};
use crate::operation::effect::Look;
use crate::operation::removal_refusal::{RemovalRefusal, every_voter, of_another, other_host, refusals};
use crate::operation::remove::RemoveOperation;

/// Nothing is changed before this holds. Every reason against it is reported at once.
#[derive(Debug)]
pub struct RemovalAllowed;

impl Phase<RemoveOperation> for RemovalAllowed {
    fn title(&self) -> &'static str {
        "Removal allowed"
    }

    fn status(&self, scene: &Scene<'_, RemoveOperation>) -> PhaseStatus {
        let node = seen!(scene.node().node, Look::Node);
        let peers = seen!(scene.node().peers, Look::Peers);
        let mut found = Vec::new();
        if !scene.goal.offline {
            let facts = seen!(scene.host().facts, Look::Facts);
            let survey = seen!(scene.host().survey, Look::Survey);
            found.extend(of_another(scene.node_goal(), (facts, survey), node.as_ref(), peers.iter()));
            found.extend(node.as_ref().and_then(|node| other_host(node, facts, &scene.node_goal().name)));
        }
        // A removal that was killed at its end has no Node any more.
        let Some(node) = node else { return allowed(found) };
        found.extend(refusals(scene.goal, node, peers.iter()));
        let membership = match members(scene) {
            Ok(membership) => membership,
            Err(first) => return first,
        };
        let leaving = leaving(scene);
        found.extend(every_voter(&leaving, &scene.goal.together, membership));
        match next_removal(&leaving, membership) {
            RemovalMove::Blocked(obstacle) => found.push(RemovalRefusal::Etcd(obstacle)),
            // Before anything is withdrawn for a member that cannot leave now.
            RemovalMove::WaitForVoters { complaints } if found.is_empty() => {
                return PhaseStatus::wait(voters_healthy(&complaints));
            }
            _ => match bereft(scene, &leaving, membership) {
                Ok(bereft) => found.extend(bereft),
                Err(first) => return first,
            },
        }
        allowed(found)
    }
}

fn allowed(found: Vec<RemovalRefusal>) -> PhaseStatus {
    if found.is_empty() { PhaseStatus::Holds } else { PhaseStatus::Blocked(Blocker::Removal(found)) }
}
