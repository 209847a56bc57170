//! Changes of members, and what etcd refuses: `mayAddMember`, `mayPromoteMember`, `mayRemoveMember` of
//! `server/etcdserver/server.go` with `--strict-reconfig-check`, and what is checked when a change is applied.

use std::time::Duration;

use metalform::etcd::act::ActError;
use metalform::etcd::client::CallError;
use metalform::etcd::membership::MembershipChange;
use metalform::etcd::quorum::quorum;
use tokio::time::Instant;

use super::{Etcd, SimulatedMember};

/// etcd's `HealthInterval`: members that have not known each other for this long are not trusted with a change.
const ACQUAINTANCE: Duration = Duration::from_secs(5);

fn not_yet(said: &str) -> ActError {
    ActError::NotYet { message: format!("etcdserver: {said}") }
}

fn overtaken(said: &str) -> ActError {
    ActError::Overtaken { message: format!("etcdserver: {said}") }
}

/// The caller has waited for as long as it does.
pub fn unconfirmed() -> ActError {
    ActError::Unconfirmed { source: CallError::Silent(metalform::etcd::client::DEADLINE) }
}

impl Etcd {
    pub fn change(&mut self, change: &MembershipChange, now: Instant) -> Result<(), ActError> {
        self.precede(change, now)?;
        self.apply(change, now)
    }

    /// The leader hands over to another voter that has its whole log.
    pub fn move_leader(&mut self, to: u64) -> Result<(), ActError> {
        if !self.is_led() {
            return Err(not_yet("no leader"));
        }
        let able =
            self.voters().any(|voter| voter.id == to && self.takes_part(voter) && !self.is_behind(voter));
        if !able {
            return Err(not_yet("request timed out, leader transfer took too long"));
        }
        self.hand_over(to);
        Ok(())
    }

    /// What comes before a change is committed. The requests that are late are at the leader, and go first. Before a
    /// removal `metalform::etcd::act` waits for an entry behind them, and looks at the list after it.
    pub fn precede(&mut self, change: &MembershipChange, now: Instant) -> Result<(), ActError> {
        if !self.is_led() {
            return Err(not_yet("no leader"));
        }
        if !self.commits() {
            // It is in the leader's log, and is committed once enough members store it.
            if change.removes().is_none() {
                self.send_late(change.clone(), now);
            }
            return Err(unconfirmed());
        }
        self.arrive(now, true);
        match change.removes() {
            Some((id, true)) if self.voters().any(|voter| voter.id == id) => Err(overtaken("it is a voter")),
            _ => Ok(()),
        }
    }

    /// A request arrives at a member that can commit it.
    pub(super) fn apply(&mut self, change: &MembershipChange, now: Instant) -> Result<(), ActError> {
        match change {
            MembershipChange::AddLearner { peer_url } => self.add(peer_url, now)?,
            MembershipChange::Promote { id } => self.promote(*id, now)?,
            MembershipChange::Remove { id, .. }
            | MembershipChange::Evict { id, .. }
            | MembershipChange::Replace { id, .. }
            | MembershipChange::Retire { id, .. } => {
                let learner_only = change.removes().is_some_and(|(_, learner_only)| learner_only);
                self.remove(*id, learner_only, now)?;
            }
        }
        self.record_list();
        Ok(())
    }

    fn add(&mut self, peer_url: &str, now: Instant) -> Result<(), ActError> {
        if self.members.iter().any(|member| member.peer_url == peer_url) {
            return Err(overtaken("Peer URLs already exists"));
        }
        if self.members.iter().any(|member| member.learner) {
            return Err(not_yet("too many learner members in cluster"));
        }
        let known = self.acquainted(now).count();
        if known < self.voters().count() {
            return Err(not_yet("unhealthy cluster"));
        }
        let id = self.id();
        self.members.push(SimulatedMember { learner: true, ..SimulatedMember::new(id, "", peer_url) });
        Ok(())
    }

    fn promote(&mut self, id: u64, now: Instant) -> Result<(), ActError> {
        let head = self.leader().and_then(|leader| self.members.iter().find(|member| member.id == leader));
        let head = head.map_or(0, |leader| leader.stored);
        let started = self.voters().filter(|voter| !voter.name.is_empty()).count() + 1;
        let needed = quorum(self.voters().count() + 1);
        let maturing = self.load.maturing;
        let member = self.members.iter_mut().find(|member| member.id == id);
        let member = member.ok_or_else(|| overtaken("member not found"))?;
        if !member.learner {
            return Err(overtaken("can only promote a learner member"));
        }
        let mature = member.connected.is_some_and(|since| now >= since + maturing);
        if !member.running || !mature || member.stored * 10 < head * 9 {
            return Err(not_yet("can only promote a learner member which is in sync with leader"));
        }
        if started < needed {
            return Err(not_yet("re-configuration failed due to not enough started members"));
        }
        member.learner = false;
        // etcd answers "unhealthy cluster" for this long after every promotion.
        member.connected = Some(now);
        Ok(())
    }

    fn remove(&mut self, id: u64, learner_only: bool, now: Instant) -> Result<(), ActError> {
        let member = self.members.iter().find(|member| member.id == id);
        let member = member.ok_or_else(|| overtaken("member not found"))?;
        if !member.learner {
            if member.connected.is_some() {
                let left = self.voters().count() - 1;
                let active = self.acquainted(now).filter(|voter| voter.id != id).count();
                if left == 0 || active < quorum(left) {
                    return Err(not_yet("unhealthy cluster"));
                }
            }
            if learner_only {
                self.violations.push(format!("the voter {} was removed as a learner", member.name));
            }
        }
        self.members.retain(|member| member.id != id);
        Ok(())
    }

    /// Voters that have been connected for long enough.
    fn acquainted(&self, now: Instant) -> impl Iterator<Item = &SimulatedMember> {
        // A cluster that has but one voter knows it.
        let alone = self.voters().count() == 1;
        self.voters()
            .filter(move |voter| voter.connected.is_some_and(|since| alone || now >= since + ACQUAINTANCE))
    }
}
