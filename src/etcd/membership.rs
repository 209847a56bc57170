//! How a node becomes a voting member of etcd: from the members and a goal to the next safe move.
//!
//! # Guarantees
//! - Nothing is added and nothing is promoted unless every other voter is known to be healthy.
//! - No learner is added while there is one: etcd takes one at a time, and so do we.
//! - What is in the list already is resumed, never added twice, whichever process added it and whenever a run was killed.
//! - A learner is removed when it is the node's own and fails, or when it was abandoned: removing it costs no vote.
//! - A voter is removed only when it is the node's own, its data is lost, this was asked for, and the healthy ones among the
//!   other voters have quorum without it.
//!
//! # Assumptions
//! The caller holds the Lease of `crate::kube_api::lease`, and observes again after every move.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::learner_watch::is_close;
use super::member::{Member, Membership};
use super::quorum::quorum;

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
    /// Since our learner last made progress, or was first seen by this run; zero while it is not in the list.
    pub waited: Duration,
    /// How long it may make no progress.
    pub limit: Duration,
    /// Why it will never start, if that is known before the limit: `does not start: exited 3 times`.
    pub hopeless: Option<&'a str>,
    /// What is known of the data of our member.
    pub data: MemberData,
    /// The learner of another node that made no progress for the limit, while no process held the Lease.
    pub abandoned: Option<u64>,
}

impl LearnerProgress<'_> {
    /// Of a member that was started and is given all the time that it takes.
    pub const STARTED: Self = Self {
        started: true,
        waited: Duration::ZERO,
        limit: Duration::MAX,
        hopeless: None,
        data: MemberData::Present,
        abandoned: None,
    };
}

/// The data of the node's own member on its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberData {
    /// The host has it, or the member has yet to start for the first time.
    Present,
    /// The member has started before, and the host has no data.
    Lost {
        /// Whether a voter may be removed for that, and joined again.
        replace: bool,
    },
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
    /// Remove the node's own learner; it is not added again.
    Remove {
        /// The learner.
        id: u64,
        /// For the record: `did not catch up in 600 s`.
        why: String,
    },
    /// Remove the learner of another node.
    Evict {
        /// The learner.
        id: u64,
        /// For the record: `https://192.0.2.12:2380 made no progress in 300 s`.
        why: String,
    },
    /// Remove the node's own member, whose data is lost, to add it again.
    Replace {
        /// The member.
        id: u64,
        /// Whether it is a voter.
        voter: bool,
    },
    /// Remove the member of a node that is removed ([`super::removal`]).
    Retire {
        /// The member.
        id: u64,
        /// Whether it is a voter.
        voter: bool,
    },
}

impl MembershipChange {
    /// The member that it removes, and whether that may only be a learner.
    pub fn removes(&self) -> Option<(u64, bool)> {
        match self {
            Self::Remove { id, .. } | Self::Evict { id, .. } => Some((*id, true)),
            Self::Replace { id, voter } | Self::Retire { id, voter } => Some((*id, !voter)),
            Self::AddLearner { .. } | Self::Promote { .. } => None,
        }
    }
}

/// An obstacle that only a person can remove.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Obstacle {
    /// The address belongs to another member.
    #[error("etcd member {other} already has the peer URL {peer_url}")]
    AddressTaken {
        /// The name of that member.
        other: String,
        /// Ours.
        peer_url: String,
    },
    /// Our name is taken by a member somewhere else, which may not be replaced.
    #[error("etcd member {name} is at {there}, not at {here}")]
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
    /// A voter lost its data, and its replacement was not asked for.
    #[error(
        "etcd member {name} is a voter and has lost its data: /var/lib/etcd/member/wal does not exist; {healthy} of {voters} voters are healthy"
    )]
    DataLost {
        /// The node's and the member's name.
        name: String,
        /// Healthy voters.
        healthy: usize,
        /// Voters in all, this one included.
        voters: usize,
    },
    /// A voter lost its data, and must not be removed.
    #[error(
        "etcd member {name} has lost its data and cannot be replaced: {healthy} of the {others} other voters are healthy, and removing a member needs {quorum} of {voters}{}",
        list(complaints)
    )]
    Irreplaceable {
        /// The node's and the member's name.
        name: String,
        /// Healthy voters among the others.
        healthy: usize,
        /// The other voters.
        others: usize,
        /// How many must agree to its removal.
        quorum: usize,
        /// Voters in all, this one included.
        voters: usize,
        /// One line for each voter that is not healthy.
        complaints: Vec<String>,
    },
    /// The cluster of the first member exists, and its data does not.
    #[error(
        "the cluster of etcd member {name} exists, and its data on this host does not: /var/lib/etcd/member/wal does not exist"
    )]
    FirstDataLost {
        /// The node's and the member's name.
        name: String,
    },
}

pub(super) fn list(complaints: &[String]) -> String {
    if complaints.is_empty() { String::new() } else { format!(" ({})", complaints.join("; ")) }
}

/// What brings `goal` nearer, given what was just observed.
pub fn next(goal: &MemberGoal, observed: &Membership, progress: LearnerProgress<'_>) -> Move {
    let ours = match own_entry(goal, observed) {
        Ok(ours) => ours,
        Err(obstacle) => {
            return match left_behind(goal, observed, progress) {
                Some(member) => replace(goal, observed, member, progress),
                None => Move::Blocked(obstacle),
            };
        }
    };
    match ours {
        None => begin(goal, observed, progress),
        Some(member) if has_lost_its_data(member, progress) => replace(goal, observed, member, progress),
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

/// The member of a machine that is replaced by one with another address, which no member has yet.
fn left_behind<'a>(
    goal: &MemberGoal,
    observed: &'a Membership,
    progress: LearnerProgress<'_>,
) -> Option<&'a Member> {
    let may_go = progress.data == (MemberData::Lost { replace: true });
    let here = observed.members.iter().any(|member| member.peer_urls.contains(&goal.peer_url));
    let named = observed.members.iter().find(|member| member.name == goal.name)?;
    (may_go && !here && has_lost_its_data(named, progress)).then_some(named)
}

fn begin(goal: &MemberGoal, observed: &Membership, progress: LearnerProgress<'_>) -> Move {
    if let Some(first) = alarm(observed).or_else(|| other_learner(None, observed, progress)) {
        return first;
    }
    let complaints = complaints(observed, None);
    if complaints.is_empty() {
        Move::Change(MembershipChange::AddLearner { peer_url: goal.peer_url.clone() })
    } else {
        Move::WaitForVoters { complaints }
    }
}

fn alarm(observed: &Membership) -> Option<Move> {
    let alarm = observed.alarms.first()?;
    let obstacle = Obstacle::Alarm { alarm: alarm.kind.name().to_owned(), member: alarm.member };
    Some(Move::Blocked(obstacle))
}

/// Another node's learner goes first, unless it was abandoned.
fn other_learner(ours: Option<u64>, observed: &Membership, progress: LearnerProgress<'_>) -> Option<Move> {
    let learner = observed.members.iter().find(|member| member.is_learner && Some(member.id) != ours)?;
    let learner_title = learner.title().to_owned();
    if progress.abandoned != Some(learner.id) {
        return Some(Move::WaitForLearner { learner: learner_title });
    }
    let why = format!("{learner_title} made no progress in {} s", progress.limit.as_secs());
    Some(Move::Change(MembershipChange::Evict { id: learner.id, why }))
}

/// A member that answers has its data, whatever was seen on its host a moment before.
fn has_lost_its_data(ours: &Member, progress: LearnerProgress<'_>) -> bool {
    let lost = matches!(progress.data, MemberData::Lost { .. });
    lost && !ours.name.is_empty() && ours.health.complaint().is_some()
}

/// Our member has started before, and its data is lost. It must not start again under its id: it has forgotten what it
/// has confirmed.
fn replace(goal: &MemberGoal, observed: &Membership, ours: &Member, progress: LearnerProgress<'_>) -> Move {
    let change = Move::Change(MembershipChange::Replace { id: ours.id, voter: !ours.is_learner });
    if ours.is_learner {
        return change;
    }
    if let Some(blocked) = alarm(observed) {
        return blocked;
    }
    let voters = observed.voters().count();
    let healthy = observed.healthy_voters().filter(|voter| voter.id != ours.id).count();
    let name = goal.name.clone();
    let (others, quorum) = (voters - 1, quorum(voters));
    if healthy < quorum || observed.leader().is_none() {
        let complaints = complaints(observed, Some(ours.id));
        let numbers = Obstacle::Irreplaceable { name, healthy, others, quorum, voters, complaints };
        return Move::Blocked(numbers);
    }
    if progress.data == (MemberData::Lost { replace: false }) {
        return Move::Blocked(Obstacle::DataLost { name, healthy, voters });
    }
    other_learner(Some(ours.id), observed, progress).unwrap_or(change)
}

/// Our member is in the list, and is not a voter that works.
fn advance(goal: &MemberGoal, observed: &Membership, ours: &Member, progress: LearnerProgress<'_>) -> Move {
    let behind = observed
        .leader()
        .zip(ours.status())
        .map(|((_, leader), own)| leader.raft_applied.saturating_sub(own.raft_applied));
    let close = is_close(observed, ours);
    let complaints = complaints(observed, Some(ours.id));
    if ours.is_learner && complaints.is_empty() && close {
        return Move::Change(MembershipChange::Promote { id: ours.id });
    }
    let fails = ours.is_learner && progress.started && ours.health.complaint().is_some();
    if let Some(why) = progress.hopeless.filter(|_| fails) {
        return Move::Change(MembershipChange::Remove { id: ours.id, why: why.to_owned() });
    }
    if ours.is_learner && progress.waited >= progress.limit {
        let seconds = progress.limit.as_secs();
        let why = if close {
            format!("could not be promoted in {seconds} s: {}", complaints.join("; "))
        } else {
            format!("made no progress in {seconds} s")
        };
        return Move::Change(MembershipChange::Remove { id: ours.id, why });
    }
    match (ours.health.complaint(), behind) {
        (Some(_), _) if !progress.started => start(goal, observed, ours),
        (Some(reason), _) => Move::WaitForStart { id: ours.id, reason: reason.to_owned() },
        (None, Some(behind)) if !close => Move::WaitForSync { behind },
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

/// One line for each other voter that is not known to work.
pub fn other_complaints(goal: &MemberGoal, observed: &Membership) -> Vec<String> {
    let ours = observed.members.iter().find(|member| member.name == goal.name);
    complaints(observed, ours.map(|member| member.id))
}

/// One line for each voter other than `except` that is not known to work, or has an alarm; one if there is no leader.
pub(super) fn complaints(observed: &Membership, except: Option<u64>) -> Vec<String> {
    let mut lines: Vec<String> = observed
        .voters()
        .filter(|voter| Some(voter.id) != except)
        .filter_map(|voter| {
            let alarm = observed.alarms.iter().find(|alarm| alarm.member == voter.id);
            let alarm = alarm.map(|alarm| format!("alarm {}", alarm.kind.name()));
            let reason = voter.health.complaint().map(str::to_owned).or(alarm)?;
            Some(format!("{}: {reason}", voter.title()))
        })
        .collect();
    if lines.is_empty() {
        lines = leaderless(observed);
    }
    lines
}

/// One line if there is no leader, which every change of membership needs.
pub(super) fn leaderless(observed: &Membership) -> Vec<String> {
    let line = "no member reports that it is the leader";
    observed.leader().is_none().then(|| line.to_owned()).into_iter().collect()
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

#[cfg(test)]
mod tests;
