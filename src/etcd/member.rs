//! The members of a cluster, as observed.

use std::time::Duration;

/// The members of a cluster, as its quorum lists them, with the health that each reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// Fixed when the cluster was created.
    pub cluster_id: u64,
    /// Ordered by name, then by id; unstarted members first.
    pub members: Vec<Member>,
    /// Raised alarms. While there is one, nothing may be added.
    pub alarms: Vec<Alarm>,
}

/// One member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Assigned by etcd when the member is added; another one after removing and adding it again.
    pub id: u64,
    /// Empty until the member has started for the first time.
    pub name: String,
    /// For peers.
    pub peer_urls: Vec<String>,
    /// For clients; empty until it has started.
    pub client_urls: Vec<String>,
    pub is_learner: bool,
    pub health: Health,
}

/// Whether a member works. One that did not answer is neither healthy nor unhealthy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// It answered, knows a leader and reports no error.
    Healthy(Status),
    /// It reported an error.
    Unhealthy {
        /// `etcdserver: no leader`.
        reason: String,
    },
    /// It has not started, or did not answer before the deadline.
    Unknown {
        /// With the endpoint.
        reason: String,
    },
}

/// Status of a healthy member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    pub leader: bool,
    /// Last entry of its raft log.
    pub raft_index: u64,
    /// Last entry that is applied.
    pub raft_applied: u64,
    /// Allocated size of its database, bytes.
    pub db_size: u64,
    /// Of its key-value store.
    pub revision: i64,
    /// Of the server: `3.6.16`.
    pub version: String,
    /// Of the status request, a new connection included.
    pub latency: Duration,
}

/// An alarm of the whole cluster because of one member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alarm {
    /// Id of the member.
    pub member: u64,
    pub kind: AlarmKind,
}

/// etcd's alarms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlarmKind {
    /// The database has reached its quota; the cluster accepts no more writes.
    NoSpace,
    /// Members have different data for the same revision.
    Corrupt,
}

impl Membership {
    /// Members with a vote, started or not.
    pub fn voters(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| !member.is_learner)
    }

    /// Voters that are healthy.
    pub fn healthy_voters(&self) -> impl Iterator<Item = &Member> {
        self.voters().filter(|voter| voter.status().is_some())
    }

    /// The leader, if it answered.
    pub fn leader(&self) -> Option<(&Member, &Status)> {
        self.members.iter().find_map(|member| member.status().filter(|s| s.leader).map(|s| (member, s)))
    }
}

impl Member {
    /// Its status, when it is healthy.
    pub fn status(&self) -> Option<&Status> {
        match &self.health {
            Health::Healthy(status) => Some(status),
            Health::Unhealthy { .. } | Health::Unknown { .. } => None,
        }
    }

    /// Its name in messages; its peer URL while it has none.
    pub fn title(&self) -> &str {
        match (self.name.as_str(), self.peer_urls.first()) {
            ("", Some(url)) => url,
            (name, _) => name,
        }
    }
}

impl Health {
    /// Why it is not known to be healthy.
    pub fn complaint(&self) -> Option<&str> {
        match self {
            Self::Healthy(_) => None,
            Self::Unhealthy { reason } | Self::Unknown { reason } => Some(reason),
        }
    }
}

impl AlarmKind {
    /// As etcdctl prints it.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoSpace => "NOSPACE",
            Self::Corrupt => "CORRUPT",
        }
    }
}
