//! What members do by themselves while time passes: they elect a leader, copy its log, and commit.

use std::time::Duration;

use metalform::etcd::membership::MembershipChange;
use metalform::etcd::quorum::quorum;
use tokio::time::Instant;

use super::{Etcd, Late, SimulatedMember};

/// Entries that a member receives in a second.
const SPEED: u64 = 20_000;
/// Entries that the leader keeps for those behind it: `SnapshotCount` and `SnapshotCatchUpEntries` of etcd 3.6. One
/// that needs older entries is sent a snapshot.
const KEPT: u64 = 15_000;

impl Etcd {
    pub fn copy(&mut self, now: Instant) {
        let before = self.copied_at.replace(now).unwrap_or(now);
        self.connect(now);
        self.elect(now);
        if self.is_led() {
            self.replicate(now - before);
        }
        self.arrive(now, false);
    }

    /// The leader; where nothing has happened yet, the first that could be.
    pub(super) fn leader(&self) -> Option<u64> {
        let leads = |voter: &&SimulatedMember| self.takes_part(voter);
        let elected = self.voters().filter(leads).find(|voter| Some(voter.id) == self.leader);
        elected.or_else(|| self.voters().find(leads)).map(|voter| voter.id)
    }

    /// Whether it lacks entries that are committed, and will not have them before a request times out.
    pub(super) fn is_behind(&self, member: &SimulatedMember) -> bool {
        member.link.lags && member.stored < self.committed
    }

    /// Whether a new entry would be committed now.
    pub(super) fn commits(&self) -> bool {
        let storing = self.voters().filter(|voter| self.takes_part(voter) && !voter.link.lags);
        self.is_led() && storing.count() >= quorum(self.voters().count())
    }

    fn connect(&mut self, now: Instant) {
        let side = self.side();
        for member in &mut self.members {
            let connected = member.running && side == Some(member.link.side);
            member.connected = connected.then(|| member.connected.unwrap_or(now));
        }
    }

    fn elect(&mut self, now: Instant) {
        let side = self.side();
        let able = |voter: &&SimulatedMember| voter.running && side == Some(voter.link.side);
        if self.voters().filter(able).any(|voter| Some(voter.id) == self.leader) {
            return;
        }
        // The longest log; of equal ones, the first.
        let longest = self.voters().filter(able).map(|voter| voter.stored).max();
        let Some(elected) = self.voters().filter(able).find(|voter| Some(voter.stored) == longest) else {
            self.leader = None;
            return;
        };
        let (id, stored) = (elected.id, elected.stored);
        if stored < self.committed {
            let gone = self.committed - stored;
            self.violations
                .push(format!("{gone} committed entries are lost: member {id} leads without them"));
            self.committed = stored;
        }
        // The first one of all is there at once.
        self.elected = (self.term > 0).then_some(now);
        self.leader = Some(id);
        self.term += 1;
        // What was never committed is taken back where the new leader does not have it.
        let followers =
            self.members.iter_mut().filter(|member| member.running && side == Some(member.link.side));
        followers.for_each(|member| member.stored = member.stored.min(stored));
    }

    /// Without an election: the next leader is told to begin its term at once.
    pub(super) fn hand_over(&mut self, to: u64) {
        let head = self.members.iter().map(|member| member.stored).max().unwrap_or_default();
        if let Some(member) = self.members.iter_mut().find(|member| member.id == to) {
            member.stored = head;
        }
        self.leader = Some(to);
        self.term += 1;
    }

    fn replicate(&mut self, elapsed: Duration) {
        let Some(leader) = self.leader() else { return };
        let (side, database, term) = (self.side(), self.load.database, self.term);
        let millis = u64::try_from(elapsed.as_millis()).unwrap();
        let written = if self.full.is_none() { millis * self.load.writes / 1000 } else { 0 };
        let head = self.members.iter().find(|member| member.id == leader).map_or(0, |leader| leader.stored);
        let head = head + written;
        let mut named = false;
        for member in self.members.iter_mut().filter(|one| one.running && side == Some(one.link.side)) {
            if member.id == leader {
                (member.stored, member.acknowledged) = (head, term);
                continue;
            }
            if member.link.lags {
                continue;
            }
            member.acknowledged = term;
            let mut millis = millis;
            if member.snapshot == 0 && database > 0 && head - member.stored.min(head) > KEPT {
                member.snapshot = database;
            }
            if member.snapshot > 0 {
                let received = millis.saturating_mul(member.link.speed / 1000);
                member.snapshot = member.snapshot.saturating_sub(received);
                if member.snapshot > 0 {
                    continue;
                }
                named |= member.name != member.called;
                member.name.clone_from(&member.called);
                // It is as old as its transfer was long.
                let age = database / member.link.speed.max(1);
                member.stored = member.stored.max(head.saturating_sub(age * self.load.writes));
                millis = 0;
            }
            member.stored = head.min(member.stored + millis * SPEED / 1000);
        }
        let mut logs: Vec<u64> = self.voters().map(|voter| voter.stored).collect();
        logs.sort_unstable_by(|one, other| other.cmp(one));
        if let Some(stored) = logs.get(quorum(logs.len()) - 1) {
            self.committed = self.committed.max(*stored);
        }
        if named {
            self.record_list();
        }
    }

    /// Sends a change that nobody waits for any more. It is behind those that were sent before.
    pub fn send_late(&mut self, change: MembershipChange, at: Instant) {
        let at = self.late.last().map_or(at, |last| last.at.max(at));
        self.late.push(Late { change, at });
    }

    /// What is late and due is committed; all of it, where another entry is behind it.
    pub(super) fn arrive(&mut self, now: Instant, all: bool) {
        if !self.commits() {
            return;
        }
        let (due, later): (Vec<Late>, Vec<Late>) =
            std::mem::take(&mut self.late).into_iter().partition(|late| all || late.at <= now);
        self.late = later;
        for late in due {
            // It is refused, or not: its sender does not learn of it.
            drop(self.apply(&late.change, now));
        }
    }

    /// The list of members is another one from now on; it is an entry of the log.
    pub(super) fn record_list(&mut self) {
        let (leader, list) = (self.leader(), self.list());
        let entry = match self.members.iter_mut().find(|member| Some(member.id) == leader) {
            Some(leader) => {
                // Where nothing else is written, every member has it at once.
                leader.stored += u64::from(self.load.writes > 0);
                leader.stored
            }
            None => self.members.iter().map(|member| member.stored).max().unwrap_or_default(),
        };
        self.lists.push((entry, list));
    }
}
