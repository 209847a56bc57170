//! What is waited for on the way to a voter.

use std::time::Duration;

use crate::etcd::membership::{MembershipChange, Move};
use crate::operation::cause::Cause;
use crate::operation::class::FailureClass;
use crate::operation::condition::Condition;
use crate::operation::contract::{NodeOperation, Scene};
use crate::operation::effect::{LookKey, member_id};

/// How long a learner may make no progress before it is removed.
pub(super) const LEARNER_LIMIT: Duration = Duration::from_secs(300);
/// How long a learner may take to start and catch up in all, as long as it makes progress.
pub(super) const COPY_LIMIT: Duration = Duration::from_secs(12 * 3600);
/// How long operations on other nodes may take with theirs.
pub(super) const QUEUE_LIMIT: Duration = Duration::from_secs(900);

pub(super) fn wait<O: NodeOperation>(scene: &Scene<'_, O>, waiting: &Move) -> Condition {
    let name = &scene.node_goal().name;
    let is_learner = scene.etcd_begun().learner.is_some();
    // A learner is removed when it makes no progress; the wait ends only if that does not succeed.
    let start_limit = LEARNER_LIMIT + Duration::from_secs(30);
    let learner_limit = if is_learner { COPY_LIMIT } else { start_limit };
    let condition = |sentence: String, last_seen: String, limit: Duration| Condition {
        sentence,
        class: FailureClass::Etcd,
        last_seen,
        limit,
        looks: vec![LookKey::Membership],
        causes: Vec::new(),
        hopeless: None,
    };
    let on_the_host = |condition: Condition| {
        let causes = vec![Cause::kubelet(), Cause::container("etcd")];
        let mut condition = condition.caused_by(scene.host(), causes);
        if is_learner {
            // It is removed first.
            condition.hopeless = None;
        }
        condition
    };
    let mut condition = match waiting {
        // Another learner's wait is another wait.
        Move::WaitForStart { reason, id } => on_the_host(condition(
            format!("etcd on {name} to start as member {}", member_id(*id)),
            reason.clone(),
            learner_limit,
        )),
        Move::WaitForSync { behind } => on_the_host(condition(
            format!("etcd on {name} to catch up"),
            format!("{behind} log entries behind"),
            learner_limit,
        )),
        Move::WaitForVoters { complaints } => condition(
            "every voting member of etcd to be healthy".to_owned(),
            complaints.join("; "),
            if is_learner { start_limit } else { Duration::from_secs(120) },
        ),
        // Whether the run that added it still exists, its lease shows.
        Move::WaitForLearner { learner } => Condition {
            class: FailureClass::OtherOperation,
            looks: vec![LookKey::Membership, LookKey::Lease],
            ..condition("no other learner in etcd".to_owned(), format!("{learner} is one"), QUEUE_LIMIT)
        },
        Move::StartLearner { id, .. } => condition(
            format!("etcd on {name} to start as member {}", member_id(*id)),
            "its static pod was written".to_owned(),
            learner_limit,
        ),
        Move::Holds | Move::Change(_) | Move::Blocked(_) => condition(
            format!("etcd on {name} to be a healthy voter"),
            describe(waiting),
            Duration::from_secs(60),
        ),
    };
    // Others would take a learner whose run has lost the lease for one that nobody waits for.
    if is_learner && scene.etcd_begun().lease {
        condition.causes.push(Cause::Lease);
    }
    condition
}

/// Why a member is not a healthy voter, for people.
pub(super) fn describe(decided: &Move) -> String {
    match decided {
        Move::Holds => "it is a healthy voter".to_owned(),
        Move::Change(MembershipChange::AddLearner { .. }) => "it is not a member".to_owned(),
        Move::Change(MembershipChange::Promote { .. }) => "it is a learner".to_owned(),
        Move::Change(MembershipChange::Remove { why, .. }) => format!("it {why}"),
        Move::Change(MembershipChange::Evict { why, .. }) => why.clone(),
        Move::Change(MembershipChange::Replace { .. }) => "its data is lost".to_owned(),
        Move::Change(MembershipChange::Retire { .. }) => "its node is removed".to_owned(),
        Move::StartLearner { .. } => "it has not started".to_owned(),
        Move::WaitForStart { reason, .. } => reason.clone(),
        Move::WaitForSync { behind } => format!("it is {behind} log entries behind"),
        Move::WaitForVoters { complaints } => complaints.join("; "),
        Move::WaitForLearner { learner } => format!("{learner} is a learner"),
        Move::Blocked(obstacle) => obstacle.to_string(),
    }
}
