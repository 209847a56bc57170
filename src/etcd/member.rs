//! What was seen of a cluster's members.

use std::time::Duration;

/// The members of a cluster, as its quorum lists them, with what each said of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// Fixed when the cluster began.
    pub cluster_id: u64,
    /// Ordered by name, then by id; unstarted members first.
    pub members: Vec<Member>,
    /// Raised alarms. While there is one, nothing may be added.
    pub alarms: Vec<Alarm>,
}

/// One member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Given by etcd when the member was added; another one after removing and adding again.
    pub id: u64,
    /// Empty until the member has started for the first time.
    pub name: String,
    /// Where its peers reach it.
    pub peer_urls: Vec<String>,
    /// Where clients reach it; empty until it has started.
    pub client_urls: Vec<String>,
    /// Whether it has no vote yet.
    pub is_learner: bool,
    /// What it said of itself.
    pub health: Health,
}

/// Whether a member works. Not having heard from it is neither good nor bad news.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// It answered, knows a leader and reports no error.
    Healthy(Status),
    /// It answered that something is wrong.
    Unhealthy {
        /// What it said: `etcdserver: no leader`.
        reason: String,
    },
    /// It has not started, or did not answer before the deadline.
    Unknown {
        /// What was tried, and what came back.
        reason: String,
    },
}

/// What a working member says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Whether it leads.
    pub leader: bool,
    /// Last entry of its raft log.
    pub raft_index: u64,
    /// Last entry that it has applied.
    pub raft_applied: u64,
    /// Allocated by its database, bytes.
    pub db_size: u64,
    /// Of its key-value store.
    pub revision: i64,
    /// Of the server: `3.6.16`.
    pub version: String,
    /// Of the question and its answer, a new connection included.
    pub latency: Duration,
}

/// A condition that etcd raised for the whole cluster because of one member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alarm {
    /// The member.
    pub member: u64,
    /// What is wrong.
    pub kind: AlarmKind,
}

/// What etcd raises alarms about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlarmKind {
    /// The database has reached its quota; the cluster takes no more writes.
    NoSpace,
    /// Members have different data for the same revision.
    Corrupt,
}

impl Membership {
    /// Members with a vote, started or not.
    pub fn voters(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| !member.is_learner)
    }

    /// The member that leads, if it answered.
    pub fn leader(&self) -> Option<(&Member, &Status)> {
        self.members.iter().find_map(|member| member.status().filter(|s| s.leader).map(|s| (member, s)))
    }
}

impl Member {
    /// What it says of itself, when it works.
    pub fn status(&self) -> Option<&Status> {
        match &self.health {
            Health::Healthy(status) => Some(status),
            Health::Unhealthy { .. } | Health::Unknown { .. } => None,
        }
    }

    /// What to call it in a sentence: its name, or where it will be while it has none.
    pub fn title(&self) -> &str {
        match (self.name.as_str(), self.peer_urls.first()) {
            ("", Some(url)) => url,
            (name, _) => name,
        }
    }
}

impl Health {
    /// Why it is not known to work; `None` when it works.
    pub fn complaint(&self) -> Option<&str> {
        match self {
            Self::Healthy(_) => None,
            Self::Unhealthy { reason } | Self::Unknown { reason } => Some(reason),
        }
    }
}
