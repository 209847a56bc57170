//! etcd's rules for its members, as its documentation and `server/etcdserver` have them.

use std::time::Duration;

use metalform::etcd::act::ActError;
use metalform::etcd::client::ClientError;
use metalform::etcd::member::{Health, Member, Membership, Status};
use metalform::etcd::membership::MembershipChange;
use metalform::etcd::quorum::quorum;
use tokio::time::Instant;

/// Entries of a log that is long enough to take its time.
const LOG: u64 = 20_000;
/// What a learner copies in a second.
const SPEED: u64 = 20_000;
/// etcd's `HealthInterval`: members that have not known each other for this long are not trusted with a change.
const ACQUAINTANCE: Duration = Duration::from_secs(5);

pub struct SimulatedMember {
    pub id: u64,
    pub name: String,
    pub peer_url: String,
    pub learner: bool,
    pub running: bool,
    applied: u64,
}

#[derive(Default)]
pub struct Etcd {
    pub members: Vec<SimulatedMember>,
    /// How often a cluster was begun.
    pub begun: usize,
    /// Whether a member that had started before started without its data: it has forgotten what it has confirmed.
    pub forgot: bool,
    next_id: u64,
    trusted_at: Option<Instant>,
    copied_at: Option<Instant>,
}

impl Etcd {
    pub fn voters(&self) -> impl Iterator<Item = &SimulatedMember> {
        self.members.iter().filter(|member| !member.learner)
    }

    pub fn has_quorum(&self) -> bool {
        let voters = self.voters().count();
        voters > 0 && self.voters().filter(|voter| voter.running).count() >= quorum(voters)
    }

    fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// A process starts on a host with these flags. `data` is what its data directory is of. Anything but true
    /// is what etcd dies of.
    pub fn start(
        &mut self,
        name: &str,
        peer_url: &str,
        flags: (&str, &str),
        data: &mut Option<u64>,
    ) -> Result<(), &'static str> {
        if let Some(id) = *data {
            let member = self.members.iter_mut().find(|member| member.id == id);
            let member = member.ok_or("the member has been permanently removed from the cluster")?;
            member.running = true;
            member.name = name.to_owned();
            return Ok(());
        }
        if flags.1 == "new" {
            self.begun += 1;
            if !self.members.is_empty() {
                return Err("a second cluster has begun");
            }
            let id = self.id();
            self.members.push(SimulatedMember {
                id,
                name: name.to_owned(),
                peer_url: peer_url.to_owned(),
                learner: false,
                running: true,
                applied: LOG,
            });
            *data = Some(id);
            return Ok(());
        }
        if flags.1 != "existing" {
            return Err("invalid value for flag -initial-cluster-state");
        }
        if !self.has_quorum() {
            return Err("cannot fetch cluster info from peer urls");
        }
        let listed = |member: &SimulatedMember| {
            let name = if member.peer_url == peer_url { name } else { &member.name };
            format!("{name}={}", member.peer_url)
        };
        let mut expected: Vec<String> = self.members.iter().map(listed).collect();
        expected.sort();
        if expected.join(",") != flags.0 {
            return Err("member count is unequal");
        }
        let ours = self.members.iter_mut().find(|member| member.peer_url == peer_url);
        let ours = ours.ok_or("couldn't find local name in the initial cluster configuration")?;
        self.forgot |= !ours.name.is_empty();
        ours.running = true;
        ours.name = name.to_owned();
        *data = Some(ours.id);
        Ok(())
    }

    pub fn copy(&mut self, now: Instant) {
        let before = self.copied_at.replace(now).unwrap_or(now);
        if self.has_quorum() {
            let entries = u64::try_from((now - before).as_millis()).unwrap() * SPEED / 1000;
            for member in self.members.iter_mut().filter(|member| member.running) {
                member.applied = LOG.min(member.applied + entries);
            }
        }
    }

    /// Removes the learner at a peer URL; how many that were.
    pub fn withdraw(&mut self, peer_url: &str) -> Result<usize, ActError> {
        if !self.has_quorum() {
            return Err(ActError::NotYet { message: "etcdserver: no leader".to_owned() });
        }
        let before = self.members.len();
        self.members.retain(|member| !member.learner || member.peer_url != peer_url);
        Ok(before - self.members.len())
    }

    pub fn observe(&self) -> Result<Membership, ClientError> {
        if !self.has_quorum() {
            return Err(ClientError::NoAnswer { tried: vec!["nobody leads".to_owned()] });
        }
        let leader = self.voters().find(|voter| voter.running).map(|voter| voter.id);
        let mut members: Vec<Member> = self.members.iter().map(|member| seen(member, leader)).collect();
        members.sort_by(|one, other| (&one.name, one.id).cmp(&(&other.name, other.id)));
        Ok(Membership { cluster_id: 1, members, alarms: Vec::new() })
    }

    pub fn change(&mut self, change: &MembershipChange, now: Instant) -> Result<(), ActError> {
        let not_yet = |said: &str| ActError::NotYet { message: format!("etcdserver: {said}") };
        let overtaken = |said: &str| ActError::Overtaken { message: format!("etcdserver: {said}") };
        if !self.has_quorum() {
            return Err(not_yet("no leader"));
        }
        match change {
            MembershipChange::AddLearner { peer_url } => {
                if self.members.iter().any(|member| member.peer_url == *peer_url) {
                    return Err(overtaken("Peer URLs already exists"));
                }
                if self.members.iter().any(|member| member.learner) {
                    return Err(not_yet("too many learner members in cluster"));
                }
                if self.trusted_at.is_some_and(|at| now < at) {
                    return Err(not_yet("unhealthy cluster"));
                }
                let id = self.id();
                self.members.push(SimulatedMember {
                    id,
                    name: String::new(),
                    peer_url: peer_url.clone(),
                    learner: true,
                    running: false,
                    applied: 0,
                });
            }
            MembershipChange::Promote { id } => {
                let member = self.members.iter_mut().find(|member| member.id == *id);
                let member = member.ok_or_else(|| overtaken("member not found"))?;
                if !member.learner {
                    return Err(overtaken("can only promote a learner member"));
                }
                if !member.running || member.applied * 10 < LOG * 9 {
                    return Err(not_yet("can only promote a learner member which is in sync with leader"));
                }
                member.learner = false;
                self.trusted_at = Some(now + ACQUAINTANCE);
            }
            MembershipChange::Remove { id, .. }
            | MembershipChange::Evict { id, .. }
            | MembershipChange::Replace { id, .. } => {
                // As `metalform::etcd::act` looks before it removes.
                let learner_only = change.removes().is_some_and(|(_, learner_only)| learner_only);
                if learner_only && self.voters().any(|voter| voter.id == *id) {
                    return Err(overtaken("it is a voter"));
                }
                let before = self.members.len();
                self.members.retain(|member| member.id != *id);
                if self.members.len() == before {
                    return Err(overtaken("member not found"));
                }
            }
        }
        Ok(())
    }
}

fn seen(member: &SimulatedMember, leader: Option<u64>) -> Member {
    let started = !member.name.is_empty();
    let health = if member.running {
        Health::Healthy(Status {
            leader: Some(member.id) == leader,
            raft_index: member.applied,
            raft_applied: member.applied,
            db_size: 20 << 20,
            revision: 8000,
            version: "3.6.16".to_owned(),
            latency: Duration::from_millis(1),
        })
    } else {
        Health::Unknown { reason: if started { "no answer" } else { "has not started" }.to_owned() }
    };
    Member {
        id: member.id,
        name: member.name.clone(),
        peer_urls: vec![member.peer_url.clone()],
        client_urls: if started { vec![member.peer_url.replace(":2380", ":2379")] } else { Vec::new() },
        is_learner: member.learner,
        health,
    }
}
