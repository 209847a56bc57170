//! etcd's rules for its members, as its documentation and `server/etcdserver` have them. Each member has a log, a side
//! of the network and a view of the list of its own; [`raft`] lets time pass, [`reconfiguration`] changes members.

mod alone;
mod raft;
mod reconfiguration;

pub use self::reconfiguration::unconfirmed;

use std::time::Duration;

use metalform::etcd::client::ClientError;
use metalform::etcd::member::{Alarm, AlarmKind, Health, Member, Membership, Status};
use metalform::etcd::membership::MembershipChange;
use metalform::etcd::quorum::quorum;
use tokio::time::Instant;

use self::alone::Former;

/// Entries of a log that is long enough to take its time.
const LOG: u64 = 20_000;

pub struct SimulatedMember {
    pub id: u64,
    pub name: String,
    pub peer_url: String,
    pub learner: bool,
    pub running: bool,
    pub link: Link,
    /// The last entry of its log.
    stored: u64,
    /// What of the leader's snapshot has not arrived, in bytes. Until then it serves no client and has no name.
    snapshot: u64,
    /// The name that it takes then.
    called: String,
    /// Since when its peers reach it.
    connected: Option<Instant>,
    /// The term in which the leader last heard of its log.
    acknowledged: u64,
}

/// How a member is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Members on different sides do not reach each other.
    pub side: usize,
    /// Whether clients reach it.
    pub answers: bool,
    /// Whether it receives no entries, although it is connected.
    pub lags: bool,
    /// What it receives of a snapshot in a second, in bytes.
    pub speed: u64,
}

/// What differs from one cluster to another.
#[derive(Debug, Clone, Copy, Default)]
pub struct Load {
    /// Entries in a second.
    pub writes: u64,
    /// Bytes of a snapshot.
    pub database: u64,
    /// How long there is no leader after one was lost.
    pub election: Duration,
    /// How long a learner has run before it may be promoted.
    pub maturing: Duration,
}

/// A request that its sender has given up, and that arrives all the same.
struct Late {
    change: MembershipChange,
    at: Instant,
}

#[derive(Default)]
pub struct Etcd {
    pub members: Vec<SimulatedMember>,
    /// How often a cluster was begun.
    pub begun: usize,
    /// Whether a member that had started before started without its data: it has forgotten what it has confirmed.
    pub forgot: bool,
    pub load: Load,
    /// The member whose database has reached its quota.
    pub full: Option<u64>,
    /// What must never happen, and did.
    pub violations: Vec<String>,
    next_id: u64,
    committed: u64,
    /// Every list of members, with the entry that made it.
    lists: Vec<(u64, Vec<Member>)>,
    late: Vec<Late>,
    leader: Option<u64>,
    term: u64,
    /// When the present leader was elected.
    elected: Option<Instant>,
    copied_at: Option<Instant>,
    /// The members that were left behind when one went on alone, and how many voted with it.
    former: Vec<Former>,
}

impl Default for Link {
    fn default() -> Self {
        Self { side: 0, answers: true, lags: false, speed: u64::MAX }
    }
}

impl SimulatedMember {
    fn new(id: u64, name: &str, peer_url: &str) -> Self {
        Self {
            id,
            name: name.to_owned(),
            peer_url: peer_url.to_owned(),
            learner: false,
            running: false,
            link: Link::default(),
            stored: 0,
            snapshot: 0,
            called: name.to_owned(),
            connected: None,
            acknowledged: 0,
        }
    }

    pub fn client_url(&self) -> String {
        self.peer_url.replace(":2380", ":2379")
    }

    fn listed(&self) -> Member {
        let started = !self.name.is_empty();
        let reason = if started { "no answer" } else { "has not started" };
        Member {
            id: self.id,
            name: self.name.clone(),
            peer_urls: vec![self.peer_url.clone()],
            client_urls: if started { vec![self.client_url()] } else { Vec::new() },
            is_learner: self.learner,
            health: Health::Unknown { reason: reason.to_owned() },
        }
    }
}

impl Etcd {
    pub fn voters(&self) -> impl Iterator<Item = &SimulatedMember> {
        self.members.iter().filter(|member| !member.learner)
    }

    /// The side on which most voters run.
    fn side(&self) -> Option<usize> {
        let running = || self.voters().filter(|voter| voter.running);
        let needed = quorum(self.voters().count());
        let holds = |side: &usize| running().filter(|voter| voter.link.side == *side).count() >= needed;
        running().map(|voter| voter.link.side).find(holds)
    }

    pub fn has_quorum(&self) -> bool {
        self.side().is_some()
    }

    /// Whether requests are served.
    pub fn is_led(&self) -> bool {
        let elected = |at: Instant| self.copied_at.is_none_or(|now| now >= at + self.load.election);
        self.has_quorum() && self.elected.is_none_or(elected)
    }

    /// Whether a member runs where most voters do.
    pub fn takes_part(&self, member: &SimulatedMember) -> bool {
        member.running && self.side() == Some(member.link.side)
    }

    /// Whether it answers a client, and has a leader.
    pub fn is_healthy(&self, member: &SimulatedMember) -> bool {
        self.takes_part(member) && member.link.answers && !member.name.is_empty() && self.is_led()
    }

    /// Whether a client finds nothing wrong with it.
    pub fn is_well(&self, member: &SimulatedMember) -> bool {
        self.is_healthy(member) && self.full != Some(member.id)
    }

    /// The size of a member's files, bytes.
    pub fn files(&self, of: &str) -> Option<u64> {
        let member = self.members.iter().find(|member| member.called == of)?;
        Some(self.load.database.saturating_sub(member.snapshot))
    }

    fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// The data of a new cluster is created on a host: that of this member alone.
    pub fn begin(&mut self, name: &str, peer_url: &str) -> u64 {
        self.begun += 1;
        let id = self.id();
        self.members.push(SimulatedMember { stored: LOG, ..SimulatedMember::new(id, name, peer_url) });
        self.record_list();
        id
    }

    /// A process starts on a host with this `--initial-cluster`, as one of a cluster that exists. `data` is what its
    /// data directory is of. Anything but true is what etcd dies of.
    pub fn start(
        &mut self,
        name: &str,
        peer_url: &str,
        initial_cluster: &str,
        data: &mut Option<u64>,
    ) -> Result<(), &'static str> {
        if let Some(id) = *data {
            let member = self.members.iter_mut().find(|member| member.id == id);
            let member = member.ok_or("the member has been permanently removed from the cluster")?;
            member.running = true;
            return Ok(());
        }
        let reaches = self.members.iter().find(|member| member.peer_url == peer_url);
        if self.side().is_none_or(|side| reaches.is_some_and(|member| member.link.side != side)) {
            return Err("cannot fetch cluster info from peer urls");
        }
        let listed = |member: &SimulatedMember| {
            let name = if member.peer_url == peer_url { name } else { &member.name };
            format!("{name}={}", member.peer_url)
        };
        let mut expected: Vec<String> = self.members.iter().map(listed).collect();
        expected.sort();
        if expected.join(",") != initial_cluster {
            return Err("member count is unequal");
        }
        let (term, database) = (self.term, self.load.database);
        let ours = self.members.iter_mut().find(|member| member.peer_url == peer_url);
        let ours = ours.ok_or("couldn't find local name in the initial cluster configuration")?;
        self.forgot |= !ours.name.is_empty();
        if ours.stored > 0 && ours.acknowledged == term {
            // The leader counts on entries that are gone; another leader would begin from nothing.
            return Err("tocommit is out of range [lastIndex(0)]");
        }
        (ours.running, ours.stored, ours.snapshot) = (true, 0, database);
        ours.called = name.to_owned();
        if database == 0 {
            ours.name = name.to_owned();
        }
        *data = Some(ours.id);
        self.record_list();
        Ok(())
    }

    /// What quorum lists, and the health of each, through any member.
    pub fn observe(&self) -> Result<Membership, ClientError> {
        let endpoints: Vec<String> = self.members.iter().map(SimulatedMember::client_url).collect();
        self.observe_through(&endpoints, true)
    }

    /// Through the first of these that answers. A read that is linearizable waits until its member has every entry; one
    /// that is not goes to the member with the oldest list.
    pub fn observe_through(
        &self,
        endpoints: &[String],
        linearizable: bool,
    ) -> Result<Membership, ClientError> {
        let asked = |url: &String| self.members.iter().find(|member| member.client_url() == *url);
        let current = |member: &&SimulatedMember| {
            !member.learner && self.is_led() && self.takes_part(member) && !self.is_behind(member)
        };
        let answers =
            |member: &&SimulatedMember| member.running && member.link.answers && !member.name.is_empty();
        let mut answering = endpoints.iter().filter_map(asked).filter(answers);
        let through =
            if linearizable { answering.find(current) } else { answering.min_by_key(|member| member.stored) };
        let through =
            through.ok_or_else(|| ClientError::NoAnswer { tried: vec!["nobody leads".to_owned()] })?;
        let mut members = if linearizable { self.list() } else { self.view(through) };
        for member in &mut members {
            if let Some(known) = self.members.iter().find(|known| known.id == member.id) {
                member.health = self.health(known);
            }
        }
        members.sort_by(|one, other| (&one.name, one.id).cmp(&(&other.name, other.id)));
        let alarms = self.full.map(|member| Alarm { member, kind: AlarmKind::NoSpace });
        Ok(Membership { cluster_id: 1, members, alarms: alarms.into_iter().collect() })
    }

    fn list(&self) -> Vec<Member> {
        self.members.iter().map(SimulatedMember::listed).collect()
    }

    /// The list as one member has it.
    fn view(&self, of: &SimulatedMember) -> Vec<Member> {
        let known = self.lists.iter().rev().find(|(entry, _)| *entry <= of.stored);
        known.or(self.lists.first()).map(|(_, list)| list.clone()).unwrap_or_default()
    }

    fn health(&self, member: &SimulatedMember) -> Health {
        if !member.running || !member.link.answers || member.name.is_empty() {
            return member.listed().health;
        }
        if !self.is_led() || !self.takes_part(member) {
            return Health::Unhealthy { reason: "has no leader".to_owned() };
        }
        Health::Healthy(Status {
            leader: Some(member.id) == self.leader(),
            raft_index: member.stored,
            raft_applied: member.stored,
            db_size: 20 << 20,
            revision: 8000,
            version: "3.6.16".to_owned(),
            latency: Duration::from_millis(1),
        })
    }
}
