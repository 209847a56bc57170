//! The node's etcd member is not in the list of members.

use std::sync::Arc;
use std::time::Duration;

use super::members_used::bereft;
use super::membership::{is_leased, lease, members};
use crate::etcd::removal::{LeavingMember, RemovalMove, next_removal};
use crate::operation::class::FailureClass;
use crate::operation::condition::Condition;
use crate::operation::contract::{Blocker, NodeOperation, Phase, PhaseStatus, Scene};
use crate::operation::effect::{Action, LookKey};
use crate::operation::goal::peer_url;
use crate::operation::removal_refusal::RemovalRefusal;
use crate::operation::remove::RemoveOperation;

/// Through the other members, before its host is stopped. The list is asked whatever the labels say: a member that stays in
/// it without a host counts against quorum.
#[derive(Debug)]
pub struct MemberRemoved;

/// The member of the node: known by its name, or by the address that was recorded.
pub(super) fn leaving<O: NodeOperation>(scene: &Scene<'_, O>) -> LeavingMember {
    let peer_url = scene.node().recorded_address().map(peer_url);
    LeavingMember { name: scene.node_goal().name.to_string(), peer_url }
}

/// A member that is elected, or that has restarted, takes seconds.
pub(super) fn voters_healthy(complaints: &[String]) -> Condition {
    Condition {
        sentence: "every other voting member of etcd to be healthy".to_owned(),
        class: FailureClass::Etcd,
        last_seen: complaints.join("; "),
        limit: Duration::from_secs(30),
        looks: vec![LookKey::Membership],
        causes: Vec::new(),
        hopeless: None,
    }
}

impl Phase<RemoveOperation> for MemberRemoved {
    fn title(&self) -> &'static str {
        "etcd member removed"
    }

    fn status(&self, scene: &Scene<'_, RemoveOperation>) -> PhaseStatus {
        match leave(scene) {
            Ok(()) => PhaseStatus::Holds,
            Err(first) => first,
        }
    }
}

/// The member is not in the list, and the lease is free; `Err` is what comes before.
pub(super) fn leave<O: NodeOperation>(scene: &Scene<'_, O>) -> Result<(), PhaseStatus> {
    let membership = members(scene)?;
    let lease_held = scene.etcd_begun().lease;
    let leaving = leaving(scene);
    let next = next_removal(&leaving, membership);
    if matches!(next, RemovalMove::MoveLeader { .. } | RemovalMove::Change(_)) {
        let bereft = bereft(scene, &leaving, membership)?;
        if !bereft.is_empty() {
            return Err(PhaseStatus::Blocked(Blocker::Removal(bereft)));
        }
    }
    Err(match next {
        RemovalMove::Holds if lease_held => PhaseStatus::Act(Action::ReleaseLease),
        RemovalMove::Holds => return Ok(()),
        RemovalMove::Blocked(obstacle) => {
            PhaseStatus::Blocked(Blocker::Removal(vec![RemovalRefusal::Etcd(obstacle)]))
        }
        _ if !is_leased(scene) => lease(scene),
        RemovalMove::MoveLeader { to } => {
            PhaseStatus::Act(Action::MoveLeader(to, Arc::new(membership.clone())))
        }
        RemovalMove::Change(change) => {
            PhaseStatus::Act(Action::ChangeMembership(change, Arc::new(membership.clone())))
        }
        RemovalMove::WaitForVoters { complaints } => PhaseStatus::wait(voters_healthy(&complaints)),
    })
}
