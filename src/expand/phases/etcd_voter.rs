//! The node's etcd member votes, is healthy and has caught up.

use std::time::Duration;

use super::layer_applied::applied;
use crate::etcd::membership::{Change, MemberGoal, Move, Progress, next};
use crate::expand::goal::Goal;
use crate::expand::layer::Layer;
use crate::expand::phase::{Action, Blocker, Condition, Look, Next, Phase};
use crate::expand::survey::Survey;
use crate::expand::world::World;
use crate::model::role::Role;
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
        if let Some(why) = &world.learner_removed {
            return if world.lease {
                Next::Act(Action::ReleaseLease)
            } else {
                Next::Blocked(Blocker::LearnerRemoved(why.clone()))
            };
        }
        let survey = seen!(world.survey, Look::Survey);
        // Slow things first: between "added" and "started" the others have one member more than answers.
        if let Err(first) = applied(world, Layer::Etcd) {
            return first;
        }
        let membership = seen!(world.membership, Look::Membership);
        let member = MemberGoal { name: goal.name.to_string(), peer_url: goal.peer_url() };
        let unstarted = Progress { started: false, waited: waited(world), limit: LEARNER_LIMIT };
        let decided = match next(&member, membership, unstarted) {
            Move::StartLearner { initial_cluster, .. } => {
                let layer =
                    Layer::EtcdMember { initial_cluster, initial_cluster_state: "existing".to_owned() };
                match start(world, survey, layer) {
                    Ok(()) => next(&member, membership, Progress { started: true, ..unstarted }),
                    Err(first) if world.lease => return first,
                    Err(_) => return Next::Act(Action::TakeLease),
                }
            }
            other => other,
        };
        match decided {
            Move::Holds if world.lease => Next::Act(Action::ReleaseLease),
            Move::Holds => match applied(world, as_it_started(survey)) {
                Ok(()) => Next::Holds,
                Err(next) => next,
            },
            Move::Blocked(obstacle) => Next::Blocked(Blocker::Etcd(obstacle)),
            _ if !world.lease => Next::Act(Action::TakeLease),
            Move::Change(change) => Next::Act(Action::ChangeMembership(change)),
            waiting => Next::Wait(wait(goal, &waiting)),
        }
    }
}

fn waited(world: &World) -> Duration {
    world.learner_since.map_or(Duration::ZERO, |since| world.elapsed.saturating_sub(since))
}

/// The static pod is there with these flags. Data that is there without it is of a member that was removed.
fn start(world: &World, survey: &Survey, layer: Layer) -> Result<(), Next> {
    let planned = applied(world, layer);
    match planned {
        Err(Next::Act(_)) if survey.etcd_data => Err(Next::Act(Action::SetAsideMemberData)),
        other => other,
    }
}

/// The flags that a member began with say nothing after that, but changing them would restart it.
fn as_it_started(survey: &Survey) -> Layer {
    let flag = |name: &str| {
        survey.etcd_flags.as_ref().and_then(|flags| flags.get(name)).cloned().unwrap_or_default()
    };
    Layer::EtcdMember {
        initial_cluster: flag("initial-cluster"),
        initial_cluster_state: flag("initial-cluster-state"),
    }
}

fn wait(goal: &Goal, waiting: &Move) -> Condition {
    let (sentence, last_seen, limit) = match waiting {
        Move::WaitForStart { reason, .. } => (
            format!("etcd on {} to start", goal.name),
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
            Duration::from_secs(120),
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
