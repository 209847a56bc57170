//! The cluster can do without the node.

use super::member_removed::{leaving, voters_healthy};
use super::membership::members;
use crate::etcd::removal::{RemovalMove, next_removal};
use crate::operation::contract::{Blocker, Phase, PhaseStatus, Scene, seen};
use crate::operation::effect::Look;
use crate::operation::removal_refusal::{RemovalRefusal, refusals};
use crate::operation::remove::RemoveOperation;

/// Nothing is changed before this holds. Every reason against it is reported at once.
#[derive(Debug)]
pub struct RemovalAllowed;

impl Phase<RemoveOperation> for RemovalAllowed {
    fn title(&self) -> &'static str {
        "Removal allowed"
    }

    fn status(&self, scene: &Scene<'_, RemoveOperation>) -> PhaseStatus {
        // A removal that was killed at its end.
        let Some(node) = seen!(scene.node().node, Look::Node) else { return PhaseStatus::Holds };
        let peers = seen!(scene.node().peers, Look::Peers);
        let mut found = refusals(scene.goal, node, peers.iter());
        let membership = match members(scene) {
            Ok(membership) => membership,
            Err(first) => return first,
        };
        match next_removal(&leaving(scene), membership) {
            RemovalMove::Blocked(obstacle) => found.push(RemovalRefusal::Etcd(obstacle)),
            // Before anything is withdrawn for a member that cannot leave now.
            RemovalMove::WaitForVoters { complaints } if found.is_empty() => {
                return PhaseStatus::wait(voters_healthy(&complaints));
            }
            _ => {}
        }
        if found.is_empty() { PhaseStatus::Holds } else { PhaseStatus::Blocked(Blocker::Removal(found)) }
    }
}
