//! The node's etcd member votes, is healthy and has caught up.

use std::time::Duration;

use super::layer_applied::applied;
use crate::etcd::member::Membership;
use crate::etcd::membership::{Change, MemberGoal, Move, Progress, initial_cluster, next};
use crate::model::role::Role;
use crate::operation::goal::Goal;
use crate::operation::layer::Layer;
use crate::operation::phase::{Action, Blocker, Condition, Look, Next, Phase};
use crate::operation::survey::Survey;
use crate::operation::world::World;
use crate::seen;

/// How long a learner may take to start and catch up before it is taken out again.
const LEARNER_LIMIT: Duration = Duration::from_secs(300);
/// How long other nodes may take with theirs.
const QUEUE_LIMIT: Duration = Duration::from_secs(900);

/// Design law 5 is kept here and in [`crate::etcd::membership`].
#[derive(Debug)]
pub struct EtcdVoter;

impl Phase for EtcdVoter {
    fn title(&self) -> &'static str {
        "etcd voter"
    }

    fn applies(&self, goal: &Goal) -> bool {
        goal.has(Role::Etcd)
    }

    fn next(&self, goal: &Goal, world: &World) -> Next {
        let survey = seen!(world.survey, Look::Survey);
        if let Some(why) = &world.learner_removed {
            return taken_out(world, survey, why);
        }
        // Slow things first: between "added" and "started" the others have one member more than answers.
        if let Err(first) = applied(world, Layer::Etcd) {
            return first;
        }
        let membership = seen!(world.membership, Look::Membership);
        let member = MemberGoal { name: goal.name.to_string(), peer_url: goal.peer_url() };
        let unstarted = Progress { started: false, waited: waited(world), limit: LEARNER_LIMIT };
        let decided = match next(&member, membership, unstarted) {
            Move::StartLearner { id, initial_cluster } => {
                let layer =
                    Layer::EtcdMember { initial_cluster, initial_cluster_state: "existing".to_owned() };
                match start(world, leftover(survey, membership, id), layer) {
                    Ok(()) => next(&member, membership, Progress { started: true, ..unstarted }),
                    Err(first) if world.lease => return first,
                    Err(_) => return Next::Act(Action::TakeLease),
                }
            }
            other => other,
        };
        match decided {
            Move::Holds if world.lease => Next::Act(Action::ReleaseLease),
            Move::Holds => match applied(world, as_it_started(survey, &member, membership)) {
                Ok(()) => Next::Holds,
                Err(next) => next,
            },
            Move::Blocked(obstacle) => Next::Blocked(Blocker::Etcd(obstacle)),
            // Whoever goes on with that learner needs the lease for it.
            Move::WaitForLearner { .. } if world.lease => Next::Act(Action::ReleaseLease),
            Move::WaitForLearner { .. } => Next::Wait(wait(goal, world, &decided)),
            _ if !world.lease => Next::Act(Action::TakeLease),
            // What is here is of a member that is not in the list any more, and cannot become one that is.
            Move::Change(Change::AddLearner { .. }) if survey.has_member() => {
                Next::Act(Action::SetAsideMemberData)
            }
            Move::Change(change) => Next::Act(Action::ChangeMembership(change)),
            // A member that has its data and lost its manifest.
            Move::WaitForStart { .. } if survey.etcd_flags.is_none() && survey.etcd_data => {
                match applied(world, as_it_started(survey, &member, membership)) {
                    Ok(()) => Next::Wait(wait(goal, world, &decided)),
                    Err(next) => next,
                }
            }
            waiting => Next::Wait(wait(goal, world, &waiting)),
        }
    }
}

fn waited(world: &World) -> Duration {
    world.learner_since.map_or(Duration::ZERO, |since| world.elapsed.saturating_sub(since))
}

/// Others need not wait for what is left to do here. etcd on a removed member's data fails for ever.
fn taken_out(world: &World, survey: &Survey, why: &str) -> Next {
    if world.lease {
        Next::Act(Action::ReleaseLease)
    } else if survey.has_member() {
        Next::Act(Action::SetAsideMemberData)
    } else {
        Next::Blocked(Blocker::LearnerRemoved(why.to_owned()))
    }
}

/// Whether data on the host is of another member than this one, which has never started.
fn leftover(survey: &Survey, membership: &Membership, id: u64) -> bool {
    let never_started = membership.members.iter().any(|member| member.id == id && member.name.is_empty());
    never_started && survey.etcd_data
}

/// The static pod is there with these flags, on no other member's data.
fn start(world: &World, leftover: bool, layer: Layer) -> Result<(), Next> {
    match applied(world, layer) {
        Err(Next::Act(_)) if leftover => Err(Next::Act(Action::SetAsideMemberData)),
        other => other,
    }
}

/// The flags that a member began with say nothing after that, but changing them would restart it.
fn as_it_started(survey: &Survey, member: &MemberGoal, membership: &Membership) -> Layer {
    let flag = |name: &str| survey.etcd_flags.as_ref().and_then(|flags| flags.get(name)).cloned();
    Layer::EtcdMember {
        initial_cluster: flag("initial-cluster").unwrap_or_else(|| initial_cluster(member, membership)),
        initial_cluster_state: flag("initial-cluster-state").unwrap_or_else(|| "existing".to_owned()),
    }
}

fn wait(goal: &Goal, world: &World, waiting: &Move) -> Condition {
    let (sentence, last_seen, limit) = match waiting {
        // Another learner's wait is another wait.
        Move::WaitForStart { reason, id } => (
            format!("etcd on {} to start as member {id:x}", goal.name),
            reason.clone(),
            LEARNER_LIMIT + Duration::from_secs(30),
        ),
        Move::WaitForSync { behind } => (
            format!("etcd on {} to catch up", goal.name),
            format!("{behind} log entries behind"),
            LEARNER_LIMIT + Duration::from_secs(30),
        ),
        Move::WaitForVoters { complaints } => (
            "every voting member of etcd to be healthy".to_owned(),
            complaints.join("; "),
            // With a learner of ours in the list, it is the learner's time that runs out: it is taken out then.
            if world.learner_since.is_some() {
                LEARNER_LIMIT + Duration::from_secs(30)
            } else {
                Duration::from_secs(120)
            },
        ),
        Move::WaitForLearner { learner } => {
            ("no other learner in etcd".to_owned(), format!("{learner} is one"), QUEUE_LIMIT)
        }
        Move::Holds
        | Move::Change(Change::AddLearner { .. } | Change::Promote { .. } | Change::Remove { .. })
        | Move::StartLearner { .. }
        | Move::Blocked(_) => (String::new(), String::new(), Duration::ZERO),
    };
    Condition { sentence, last_seen, limit, looks: vec![Look::Membership] }
}
