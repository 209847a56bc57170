//! How a node becomes a voting member of etcd: from the members and a goal to the next safe move.
//!
//! # Guarantees
//! - Nothing is added and nothing is promoted unless every other voter is known to be healthy.
//! - No learner is added while there is one: etcd takes one at a time, and so do we.
//! - What is in the list already is resumed, never added twice, whichever process added it and whenever a run was killed.
//! - Only the node's own learner is ever removed, which costs no vote.
//!
//! # Assumptions
//! The caller holds the Lease of `crate::kube_api::lease`, and observes again after every move.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::member::{Member, Membership, Status};

/// A learner may be promoted when it is at most this many log entries behind. etcd itself asks for 90 percent
/// of the leader's log only (`readyPercentThreshold` in its server), which is far away in an old cluster.
const CLOSE_ENOUGH: u64 = 1000;

/// The member that should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberGoal {
    /// The node's name, which is the member's.
    pub name: String,
    /// `https://192.0.2.11:2380`.
    pub peer_url: String,
}

/// What the list of members cannot tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LearnerProgress<'a> {
    /// Whether etcd was started on the host since the last [`Move::StartLearner`] that named the present id.
    pub started: bool,
    /// How long this run has seen our member in the list without a vote; zero while it is not there.
    pub waited: Duration,
    /// How long it may take to start and catch up.
    pub limit: Duration,
    /// Why it will never start, if that is known before the limit: `does not start: exited 3 times`.
    pub hopeless: Option<&'a str>,
}

/// The next thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    /// It is a healthy voter.
    Holds,
    /// Change the membership, through [`super::act::perform`].
    Change(MembershipChange),
    /// Start etcd on the host with `initial_cluster` and `--initial-cluster-state existing`. Data of another
    /// member id must be gone from its data directory first: etcd refuses to start on it.
    StartLearner {
        /// As the list has it.
        id: u64,
        /// All members and itself, by name: `a=https://192.0.2.10:2380,b=https://192.0.2.11:2380`.
        initial_cluster: String,
    },
    /// etcd was started on the host and has yet to answer.
    WaitForStart {
        /// As the list has it.
        id: u64,
        /// What was last heard.
        reason: String,
    },
    /// It copies the leader's data.
    WaitForSync {
        /// Log entries between what the leader and the learner have applied.
        behind: u64,
    },
    /// The others must be healthy first.
    WaitForVoters {
        /// One line for each that is not.
        complaints: Vec<String>,
    },
    /// Another node's learner goes first.
    WaitForLearner {
        /// Its name, or its peer URL while it has none.
        learner: String,
    },
    /// Waiting does not help.
    Blocked(Obstacle),
}

/// A change of membership, with every value that it needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum MembershipChange {
    /// Add a member without a vote.
    AddLearner {
        /// Where its peers will reach it.
        peer_url: String,
    },
    /// Give a learner its vote.
    Promote {
        /// The learner.
        id: u64,
    },
    /// Remove a member.
    Remove {
        /// The member.
        id: u64,
        /// For the record: `did not catch up in 600 s`.
        why: String,
    },
}

/// An obstacle that only a person can remove.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Obstacle {
    /// The address belongs to another member.
    #[error(
        "etcd member {other} already has the peer URL {peer_url}: remove it first with etcdctl member remove"
    )]
    AddressTaken {
        /// The name of that member.
        other: String,
        /// Ours.
        peer_url: String,
    },
    /// A machine was replaced: its name is taken by a member somewhere else.
    #[error(
        "etcd member {name} is at {there}, not at {here}: remove the old one first with etcdctl member remove"
    )]
    NameTaken {
        /// The name.
        name: String,
        /// Where that member is.
        there: String,
        /// Where it should be.
        here: String,
    },
    /// etcd raised an alarm.
    #[error("etcd has the alarm {alarm} for member {member:x}")]
    Alarm {
        /// `NOSPACE`, `CORRUPT`.
        alarm: String,
        /// The member it is about.
        member: u64,
    },
}

/// What brings `goal` nearer, given what was just observed.
pub fn next(goal: &MemberGoal, observed: &Membership, progress: LearnerProgress<'_>) -> Move {
    let ours = match own_entry(goal, observed) {
        Ok(ours) => ours,
        Err(obstacle) => return Move::Blocked(obstacle),
    };
    match ours {
        None => begin(goal, observed),
        Some(member) if !member.name.is_empty() && !member.is_learner => match member.health.complaint() {
            None => Move::Holds,
            Some(reason) => Move::WaitForStart { id: member.id, reason: reason.to_owned() },
        },
        Some(member) => advance(goal, observed, member, progress),
    }
}

/// Our entry of the list: by its address, and by its name once it has one.
fn own_entry<'a>(goal: &MemberGoal, observed: &'a Membership) -> Result<Option<&'a Member>, Obstacle> {
    let here = observed.members.iter().find(|member| member.peer_urls.contains(&goal.peer_url));
    let named = observed.members.iter().find(|member| member.name == goal.name);
    match (here, named) {
        (Some(member), _) if !member.name.is_empty() && member.name != goal.name => {
            Err(Obstacle::AddressTaken { other: member.name.clone(), peer_url: goal.peer_url.clone() })
        }
        (here, Some(named)) if here.is_none_or(|here| here.id != named.id) => Err(Obstacle::NameTaken {
            name: goal.name.clone(),
            there: named.peer_urls.join(","),
            here: goal.peer_url.clone(),
        }),
        (here, _) => Ok(here),
    }
}

fn begin(goal: &MemberGoal, observed: &Membership) -> Move {
    if let Some(alarm) = observed.alarms.first() {
        return Move::Blocked(Obstacle::Alarm { alarm: alarm.kind.name().to_owned(), member: alarm.member });
    }
    if let Some(learner) = observed.members.iter().find(|member| member.is_learner) {
        return Move::WaitForLearner { learner: learner.title().to_owned() };
    }
    let complaints = complaints(observed, None);
    if complaints.is_empty() {
        Move::Change(MembershipChange::AddLearner { peer_url: goal.peer_url.clone() })
    } else {
        Move::WaitForVoters { complaints }
    }
}

/// Our member is in the list, and is not a voter that works.
fn advance(goal: &MemberGoal, observed: &Membership, ours: &Member, progress: LearnerProgress<'_>) -> Move {
    let distance =
        observed.leader().zip(ours.status()).map(|((_, leader), own)| Distance::between(leader, own));
    let complaints = complaints(observed, Some(ours.id));
    if ours.is_learner && complaints.is_empty() && distance.as_ref().is_some_and(Distance::is_close) {
        return Move::Change(MembershipChange::Promote { id: ours.id });
    }
    let fails = ours.is_learner && progress.started && ours.health.complaint().is_some();
    if let Some(why) = progress.hopeless.filter(|_| fails) {
        return Move::Change(MembershipChange::Remove { id: ours.id, why: why.to_owned() });
    }
    if ours.is_learner && progress.waited >= progress.limit {
        let seconds = progress.limit.as_secs();
        let why = if distance.as_ref().is_some_and(Distance::is_close) {
            format!("could not be promoted in {seconds} s: {}", complaints.join("; "))
        } else {
            format!("did not start and catch up in {seconds} s")
        };
        return Move::Change(MembershipChange::Remove { id: ours.id, why });
    }
    match (ours.health.complaint(), distance) {
        (Some(_), _) if !progress.started => start(goal, observed, ours),
        (Some(reason), _) => Move::WaitForStart { id: ours.id, reason: reason.to_owned() },
        (None, Some(distance)) if !distance.is_close() => Move::WaitForSync { behind: distance.behind },
        (None, _) => Move::WaitForVoters { complaints },
    }
}

/// A member that joins must know every other, and one that has not started has no name.
fn start(goal: &MemberGoal, observed: &Membership, ours: &Member) -> Move {
    match observed.members.iter().find(|member| member.name.is_empty() && member.id != ours.id) {
        Some(other) => {
            Move::WaitForVoters { complaints: vec![format!("{}: has not started", other.title())] }
        }
        None => Move::StartLearner { id: ours.id, initial_cluster: initial_cluster(goal, observed) },
    }
}

/// One line for each voter other than `except` that is not known to work; one if there is no leader.
fn complaints(observed: &Membership, except: Option<u64>) -> Vec<String> {
    let mut lines: Vec<String> = observed
        .voters()
        .filter(|voter| Some(voter.id) != except)
        .filter_map(|voter| voter.health.complaint().map(|reason| format!("{}: {reason}", voter.title())))
        .collect();
    if lines.is_empty() && observed.leader().is_none() {
        lines.push("no member reports that it is the leader".to_owned());
    }
    lines
}

/// All members by name, ours included: etcd compares this with the list it gets from its peers, and does not
/// start for the first time if a member is missing.
pub fn initial_cluster(goal: &MemberGoal, observed: &Membership) -> String {
    let mut pairs: Vec<String> = observed
        .members
        .iter()
        .flat_map(|member| {
            let ours = member.peer_urls.contains(&goal.peer_url);
            let name = if ours { &goal.name } else { &member.name };
            member.peer_urls.iter().map(move |url| format!("{name}={url}"))
        })
        .collect();
    pairs.sort();
    pairs.join(",")
}

/// How far a learner is from the leader.
struct Distance {
    behind: u64,
    of: u64,
}

impl Distance {
    fn between(leader: &Status, learner: &Status) -> Self {
        Self { behind: leader.raft_applied.saturating_sub(learner.raft_applied), of: leader.raft_applied }
    }

    fn is_close(&self) -> bool {
        self.behind <= CLOSE_ENOUGH && self.behind.saturating_mul(10) <= self.of
    }
}

#[cfg(test)]
mod tests;
