//! From the members of etcd and the state of the host to the next thing to do for the node's own member. Design
//! law 5 is kept here and in [`crate::etcd::membership`].

use std::sync::Arc;
use std::time::Duration;

use super::layer_applied::{address, applied};
use super::member_wait::{LEARNER_LIMIT, QUEUE_LIMIT, wait};
use super::pods_ready::these_ready;
use crate::etcd::member::Membership;
use crate::etcd::membership::{
    LearnerProgress, MemberData, MemberGoal, MembershipChange, Move, initial_cluster, next, other_complaints,
};
use crate::etcd::quorum::has_quorum_without;
use crate::kube_api::pods::ExpectedPod;
use crate::model::role::Role;
use crate::operation::cause::Cause;
use crate::operation::class::FailureClass;
use crate::operation::condition::Condition;
use crate::operation::contract::{Blocker, NodeOperation, PhaseStatus, Scene};
use crate::operation::effect::{Action, Look, LookKey};
use crate::operation::goal::{client_url, peer_url};
use crate::operation::layer::Layer;
use crate::operation::observed::lease::LeaseView;
use crate::operation::survey::Survey;

/// How far the node's member is.
pub(super) enum MemberStatus {
    /// It is not in the list, or its static pod is not on the host yet.
    NotStarted(PhaseStatus),
    /// It was started, and does not vote yet.
    Started(PhaseStatus),
    /// It votes and is healthy.
    Votes,
}

/// Where etcd is asked, all at once: every member that is known, the nodes that shall have one, and those with an API
/// server, of which most have one. None of them is known before an API has answered.
pub(super) fn endpoints<O: NodeOperation>(scene: &Scene<'_, O>) -> Vec<String> {
    let known = scene.etcd().membership.iter().flat_map(|membership| membership.voters());
    let mut endpoints: Vec<String> = known.flat_map(|member| member.client_urls.iter().cloned()).collect();
    let peers = scene.node().peers.iter().flatten();
    let addresses = peers.flat_map(|(_, peer)| [peer.api_server_address(), peer.etcd_address()]);
    endpoints.extend(addresses.flatten().map(client_url));
    endpoints.sort();
    endpoints.dedup();
    endpoints
}

/// The members of etcd; `Err` is the look at them.
pub(super) fn members<'a, O: NodeOperation>(scene: &Scene<'a, O>) -> Result<&'a Membership, PhaseStatus> {
    let unknown = || PhaseStatus::Look(Look::Membership(endpoints(scene)));
    scene.etcd().membership.as_ref().ok_or_else(unknown)
}

/// The voters are known where an API server is given all of them, since it has no member beside it.
pub(super) fn api_server_endpoints<O: NodeOperation>(scene: &Scene<'_, O>) -> Result<(), PhaseStatus> {
    if scene.node_goal().has(Role::Etcd) { Ok(()) } else { members(scene).map(drop) }
}

/// The member that this node shall have.
pub(super) fn member_goal<O: NodeOperation>(scene: &Scene<'_, O>) -> Result<MemberGoal, PhaseStatus> {
    Ok(MemberGoal { name: scene.node_goal().name.to_string(), peer_url: peer_url(address(scene)?) })
}

/// What is next for the node's member.
pub(super) fn member<O: NodeOperation>(scene: &Scene<'_, O>) -> MemberStatus {
    match decide(scene) {
        Ok(status) => status,
        Err(first) => MemberStatus::NotStarted(first),
    }
}

fn decide<O: NodeOperation>(scene: &Scene<'_, O>) -> Result<MemberStatus, PhaseStatus> {
    let begun = scene.etcd_begun();
    let survey = scene.host().survey.as_ref().ok_or(PhaseStatus::Look(Look::Survey))?;
    if let Some(why) = &begun.learner_removed {
        return Err(removed(begun.lease, survey, why));
    }
    // Slow things first: between "added" and "started" etcd has a member that does not answer.
    applied(scene, Layer::Etcd)?;
    let membership = members(scene)?;
    let goal = member_goal(scene)?;
    let causes = [Cause::kubelet(), Cause::container("etcd")];
    let hopeless = scene.host().hopeless(&causes).map(|why| format!("does not start: {why}"));
    let since = begun.learner.as_ref().map(|learner| learner.since);
    let unstarted = LearnerProgress {
        started: false,
        waited: since.map_or(Duration::ZERO, |since| scene.now.saturating_sub(since)),
        limit: LEARNER_LIMIT,
        hopeless: hopeless.as_deref(),
        data: member_data(scene, survey),
        abandoned: abandoned(scene),
    };
    let mut decided = next(&goal, membership, unstarted);
    let mut started = is_listed(&goal, membership);
    if let Move::StartLearner { id, initial_cluster } = &decided {
        let layer = Layer::EtcdMember {
            initial_cluster: initial_cluster.clone(),
            first_start: has_never_started(membership, *id),
        };
        // Data beside a manifest with this very list is of the member itself: it copies, and has no name yet.
        let listed = survey.etcd_flags.as_ref().and_then(|flags| flags.get("initial-cluster"));
        let leftover =
            survey.etcd_data && has_never_started(membership, *id) && listed != Some(initial_cluster);
        start(scene, leftover, layer)?;
        decided = next(&goal, membership, LearnerProgress { started: true, ..unstarted });
    } else if matches!(
        decided,
        Move::Change(MembershipChange::AddLearner { .. } | MembershipChange::Replace { .. })
            | Move::Blocked(_)
    ) {
        started = false;
    }
    let votes = decided == Move::Holds;
    let status = act_on(scene, decided, survey, &goal, membership)?;
    Ok(match status {
        PhaseStatus::Holds if votes => MemberStatus::Votes,
        status if started => MemberStatus::Started(status),
        status => MemberStatus::NotStarted(status),
    })
}

/// Of a member that this run started, what was seen of its data may be of before.
fn member_data<O: NodeOperation>(scene: &Scene<'_, O>, survey: &Survey) -> MemberData {
    if survey.etcd_data || scene.host_begun().began_member() {
        MemberData::Present
    } else {
        MemberData::Lost { replace: scene.node_goal().replace_member }
    }
}

/// The learner of another node that made no progress for its limit, while no other process holds the lease: the run
/// that added it is gone.
fn abandoned<O: NodeOperation>(scene: &Scene<'_, O>) -> Option<u64> {
    let held_elsewhere = !matches!(scene.etcd().lease, Some(LeaseView::Free | LeaseView::Ours));
    let learner = scene.etcd_begun().other_learner.as_ref().filter(|_| !held_elsewhere)?;
    (scene.now.saturating_sub(learner.since) >= LEARNER_LIMIT).then_some(learner.id)
}

fn is_listed(goal: &MemberGoal, membership: &Membership) -> bool {
    membership.members.iter().any(|member| member.peer_urls.contains(&goal.peer_url))
}

fn act_on<O: NodeOperation>(
    scene: &Scene<'_, O>,
    decided: Move,
    survey: &Survey,
    goal: &MemberGoal,
    membership: &Membership,
) -> Result<PhaseStatus, PhaseStatus> {
    let lease_held = scene.etcd_begun().lease;
    Ok(match decided {
        // The other learner's operation needs the lease.
        Move::WaitForLearner { .. } if lease_held => PhaseStatus::Act(Action::ReleaseLease),
        // A learner that was added and is not listed yet is removed under it, should the run end.
        Move::WaitForVoters { .. }
            if !is_listed(goal, membership) && scene.etcd_begun().learner.is_none() =>
        {
            voters_first(scene, &decided)
        }
        Move::Holds => {
            restarted(scene, as_it_started(survey, goal, membership), goal, membership)?;
            if lease_held { PhaseStatus::Act(Action::ReleaseLease) } else { PhaseStatus::Holds }
        }
        Move::Blocked(obstacle) => PhaseStatus::Blocked(Blocker::Etcd(obstacle)),
        Move::WaitForLearner { .. } if scene.etcd().lease.is_none() => PhaseStatus::Look(Look::Lease),
        Move::WaitForLearner { .. } => PhaseStatus::wait(wait(scene, &decided)),
        _ if !is_leased(scene) => return Err(lease(scene)),
        // The data is of a member that is not in the list any more, and cannot become one that is.
        Move::Change(MembershipChange::AddLearner { .. }) if survey.has_member() => {
            PhaseStatus::Act(Action::SetAsideMemberData)
        }
        // Without data it cannot be started any more before it is added again.
        Move::Change(MembershipChange::Replace { .. }) if survey.etcd_flags.is_some() => {
            PhaseStatus::Act(Action::RemoveMemberManifest)
        }
        Move::Change(change) => {
            PhaseStatus::Act(Action::ChangeMembership(change, Arc::new(membership.clone())))
        }
        // A member that has its data, and lost its manifest or may be kept from starting by what is in it.
        Move::WaitForStart { .. }
            if survey.etcd_data && (survey.etcd_flags.is_none() || is_voter(goal, membership)) =>
        {
            repaired(scene, survey, goal, membership)?;
            PhaseStatus::wait(wait(scene, &decided))
        }
        Move::StartLearner { .. }
        | Move::WaitForStart { .. }
        | Move::WaitForSync { .. }
        | Move::WaitForVoters { .. } => PhaseStatus::wait(wait(scene, &decided)),
    })
}

fn is_voter(goal: &MemberGoal, membership: &Membership) -> bool {
    membership.voters().any(|member| member.peer_urls.contains(&goal.peer_url))
}

/// A member that does not answer gets the files that it shall run with. It may vote nevertheless, so where it has a
/// manifest, all others are healthy, or have quorum without it.
fn repaired<O: NodeOperation>(
    scene: &Scene<'_, O>,
    survey: &Survey,
    goal: &MemberGoal,
    membership: &Membership,
) -> Result<(), PhaseStatus> {
    let repair = applied(scene, as_it_started(survey, goal, membership));
    let complaints = unhealthy_others(goal, membership);
    let needed = !complaints.is_empty() && !has_quorum_without(&goal.peer_url, membership);
    match repair {
        Err(PhaseStatus::Act(_)) if survey.etcd_flags.is_some() && needed => {
            Err(PhaseStatus::wait(wait(scene, &Move::WaitForVoters { complaints })))
        }
        other => other,
    }
}

/// Waits for voters that are not healthy, without the lease: what they need to become so may need it. While another run
/// has it, it may be that which makes them healthy, and its time is not ours.
fn voters_first<O: NodeOperation>(scene: &Scene<'_, O>, waiting: &Move) -> PhaseStatus {
    if scene.etcd_begun().lease {
        return PhaseStatus::Act(Action::ReleaseLease);
    }
    match lease(scene) {
        PhaseStatus::Act(_) => PhaseStatus::wait(Condition {
            looks: vec![LookKey::Membership, LookKey::Lease],
            ..wait(scene, waiting)
        }),
        first => first,
    }
}

/// A voter runs with what its host has. It is restarted under the lease, so that no other one restarts or joins
/// meanwhile, and while all others are healthy.
pub(super) fn restarted<O: NodeOperation>(
    scene: &Scene<'_, O>,
    layer: Layer,
    goal: &MemberGoal,
    membership: &Membership,
) -> Result<(), PhaseStatus> {
    match applied(scene, layer) {
        Err(PhaseStatus::Act(action)) => {
            let complaints = unhealthy_others(goal, membership);
            Err(match complaints.is_empty() {
                true if is_leased(scene) => PhaseStatus::Act(action),
                true => lease(scene),
                false => voters_first(scene, &Move::WaitForVoters { complaints }),
            })
        }
        Ok(()) if scene.etcd_begun().lease && scene.host_begun().restarted_member() => {
            these_ready(scene, vec![ExpectedPod::Static("etcd".to_owned())])
        }
        other => other,
    }
}

/// One line for each voter that keeps this one from restarting; none where it is the only voter.
pub(super) fn unhealthy_others(goal: &MemberGoal, membership: &Membership) -> Vec<String> {
    if membership.voters().count() == 1 { Vec::new() } else { other_complaints(goal, membership) }
}

/// Whether this run has the lease, as far as it was seen since it last did something under it.
pub(super) fn is_leased<O: NodeOperation>(scene: &Scene<'_, O>) -> bool {
    scene.etcd_begun().lease && scene.etcd().lease.is_some()
}

/// What brings the lease nearer.
pub(super) fn lease<O: NodeOperation>(scene: &Scene<'_, O>) -> PhaseStatus {
    match &scene.etcd().lease {
        None => PhaseStatus::Look(Look::Lease),
        Some(LeaseView::Free | LeaseView::Ours) => PhaseStatus::Act(Action::TakeLease),
        Some(LeaseView::Held { holder, renewed }) => PhaseStatus::wait(Condition {
            sentence: "the lease on etcd membership to be free".to_owned(),
            class: FailureClass::OtherOperation,
            last_seen: format!("held by {holder}, renewed {} s ago", renewed.as_secs()),
            limit: QUEUE_LIMIT,
            looks: vec![LookKey::Lease],
            causes: Vec::new(),
            hopeless: None,
        }),
    }
}

/// Others need not wait for what is left to do here. etcd on the data of a removed member never starts.
fn removed(lease: bool, survey: &Survey, why: &str) -> PhaseStatus {
    if lease {
        PhaseStatus::Act(Action::ReleaseLease)
    } else if survey.has_member() {
        PhaseStatus::Act(Action::SetAsideMemberData)
    } else {
        PhaseStatus::Blocked(Blocker::LearnerRemoved(why.to_owned()))
    }
}

/// Whether this member of the list has never started: data on the host is of another one.
fn has_never_started(membership: &Membership, id: u64) -> bool {
    membership.members.iter().any(|member| member.id == id && member.name.is_empty())
}

/// The static pod is on the host with these flags, on no other member's data; it is written under the lease.
fn start<O: NodeOperation>(scene: &Scene<'_, O>, leftover: bool, layer: Layer) -> Result<(), PhaseStatus> {
    match applied(scene, layer) {
        Err(_) if !is_leased(scene) => Err(lease(scene)),
        Err(PhaseStatus::Act(_)) if leftover => Err(PhaseStatus::Act(Action::SetAsideMemberData)),
        other => other,
    }
}

/// The list that a member began with means nothing after that, but changing it would restart the member.
fn as_it_started(survey: &Survey, goal: &MemberGoal, membership: &Membership) -> Layer {
    let flag = |name: &str| survey.etcd_flags.as_ref().and_then(|flags| flags.get(name)).cloned();
    Layer::EtcdMember {
        initial_cluster: flag("initial-cluster").unwrap_or_else(|| initial_cluster(goal, membership)),
        first_start: false,
    }
}
