//! etcd's members, and the lease under which they are changed.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::etcd::learner_watch::LearnerWatch;
use crate::etcd::member::{Health, Member, Membership, Status};
use crate::etcd::membership::MembershipChange;
use crate::operation::effect::{Action, LookKey, Observation, OwnLearner, PREDICTED_MEMBER};
use crate::operation::goal::peer_url;
use crate::operation::layer::Layer;
use crate::operation::observed::lease::LeaseView;

/// What was observed of etcd.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EtcdPart {
    /// Its members.
    pub membership: Option<Membership>,
    /// Its members through the node's own one; the inner `None` is "it does not answer".
    pub own_member: Option<Option<Membership>>,
    /// The lease on changes of them.
    pub lease: Option<LeaseView>,
}

/// What this run has begun with etcd.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EtcdBegun {
    /// Whether this run holds the lease.
    pub lease: bool,
    /// Whether it has taken the lease and not released it: it may be lost.
    pub took_lease: bool,
    /// The node's own learner, while it is in the list.
    pub learner: Option<LearnerWatch>,
    /// The learner of another node, while there is one.
    pub other_learner: Option<LearnerWatch>,
    /// The learner that this run added, or may have added, or resumed: it must not outlive the run without a vote.
    pub own_learner: Option<OwnLearner>,
    /// Why this run removed the learner of the node, if it did.
    pub learner_removed: Option<String>,
}

impl EtcdPart {
    /// Takes in what is this part's. `peer_url` is that of the node's own member.
    pub fn put(
        &mut self,
        begun: &mut EtcdBegun,
        observation: &Observation,
        peer_url: Option<&str>,
        now: Duration,
    ) {
        match observation {
            Observation::Membership(membership) => {
                begun.watch(membership, peer_url, now);
                self.membership = Some(membership.clone());
            }
            Observation::OwnMember(answer) => self.own_member = Some(answer.clone()),
            Observation::Container(name, container) if name == "etcd" => {
                if let (Some(learner), Some(bytes)) = (&mut begun.learner, container.files) {
                    learner.has_files(bytes, now);
                }
            }
            Observation::Lease(lease) => {
                begun.lease = *lease == LeaseView::Ours;
                begun.took_lease |= begun.lease;
                // Its run is there, and may have waited for longer than this one has.
                if let (LeaseView::Held { .. }, Some(learner)) = (lease, &mut begun.other_learner) {
                    learner.since = now;
                }
                self.lease = Some(lease.clone());
            }
            _ => {}
        }
    }

    /// Forgets what is this part's.
    pub fn forget(&mut self, key: &LookKey) {
        match key {
            LookKey::Membership => self.membership = None,
            LookKey::OwnMember => self.own_member = None,
            LookKey::Lease => self.lease = None,
            _ => {}
        }
    }

    /// Takes an action as done. `name` is that of the node, and of its member.
    pub fn predict(&mut self, begun: &mut EtcdBegun, action: &Action, name: &str) {
        match action {
            Action::TakeLease => (begun.lease, begun.took_lease) = (true, true),
            Action::ChangeMembership(MembershipChange::AddLearner { peer_url }, _) => {
                if let Some(membership) = &mut self.membership {
                    membership.members.push(unstarted(peer_url));
                }
            }
            Action::ChangeMembership(MembershipChange::Promote { id }, _) => {
                for member in self.members().filter(|member| member.id == *id) {
                    member.is_learner = false;
                }
            }
            Action::ChangeMembership(
                MembershipChange::Remove { id, .. }
                | MembershipChange::Evict { id, .. }
                | MembershipChange::Replace { id, .. }
                | MembershipChange::Retire { id, .. },
                _,
            ) => {
                if let Some(membership) = &mut self.membership {
                    membership.members.retain(|member| member.id != *id);
                }
            }
            Action::MoveLeader(to, _) => {
                for member in self.members() {
                    let leads = member.id == *to;
                    if let Health::Healthy(status) = &mut member.health {
                        status.leader = leads;
                    }
                }
            }
            Action::BeginCluster(address) => {
                self.membership = Some(first_member(name, &peer_url(*address)));
            }
            Action::Apply(Layer::EtcdMember { .. }, _) => {
                let leader = self.membership.as_ref().and_then(Membership::leader).map(|(_, status)| status);
                let caught_up = leader.cloned().map(|status| Status { leader: false, ..status });
                for member in self.members().filter(|member| member.id == PREDICTED_MEMBER) {
                    name.clone_into(&mut member.name);
                    if let Some(status) = &caught_up {
                        member.health = Health::Healthy(status.clone());
                    }
                }
            }
            _ => {}
        }
    }

    fn members(&mut self) -> impl Iterator<Item = &mut Member> {
        self.membership.iter_mut().flat_map(|membership| &mut membership.members)
    }
}

fn unstarted(peer_url: &str) -> Member {
    Member {
        id: PREDICTED_MEMBER,
        name: String::new(),
        peer_urls: vec![peer_url.to_owned()],
        client_urls: Vec::new(),
        is_learner: true,
        health: Health::Unknown { reason: "has not started".to_owned() },
    }
}

/// The members of a cluster that has just begun.
fn first_member(name: &str, peer_url: &str) -> Membership {
    let status = Status {
        leader: true,
        raft_index: 0,
        raft_applied: 0,
        db_size: 0,
        revision: 0,
        version: String::new(),
        latency: Duration::ZERO,
    };
    let member = Member {
        name: name.to_owned(),
        is_learner: false,
        health: Health::Healthy(status),
        ..unstarted(peer_url)
    };
    Membership { cluster_id: 0, members: vec![member], alarms: Vec::new() }
}

impl EtcdBegun {
    /// Takes in that an action is about to be done: whether it is done or not, its answer may be lost.
    pub fn attempt(&mut self, action: &Action) {
        if let Action::ChangeMembership(MembershipChange::AddLearner { peer_url }, observed) = action {
            self.own_learner = Some(OwnLearner::new(peer_url, observed));
        }
    }

    /// Takes in that an action was done.
    pub fn remember(&mut self, action: &Action) {
        match action {
            Action::ReleaseLease => (self.lease, self.took_lease) = (false, false),
            Action::ChangeMembership(MembershipChange::Remove { why, .. }, _) => {
                self.learner_removed = Some(why.clone());
                self.own_learner = None;
            }
            Action::WithdrawLearner(_) => self.own_learner = None,
            _ => {}
        }
    }

    /// What must not remain, in this order: a learner without a run keeps every other node from joining, and only the
    /// holder of the lease may remove it; other operations wait for the lease. One that was lost is taken again for it.
    pub fn let_go(&self) -> Vec<Action> {
        if !self.took_lease {
            return Vec::new();
        }
        let learner = self.own_learner.clone().map(Action::WithdrawLearner);
        learner.into_iter().chain([Action::ReleaseLease]).collect()
    }

    /// Watches learners. `peer_url` is that of the node's own member.
    fn watch(&mut self, membership: &Membership, peer_url: Option<&str>, now: Duration) {
        let ours = |member: &&Member| member.peer_urls.iter().any(|url| Some(url.as_str()) == peer_url);
        let own = membership.members.iter().find(ours);
        let other = membership.members.iter().find(|member| member.is_learner && !ours(member));
        let learner = own.filter(|member| member.is_learner);
        let watched = |before, member| LearnerWatch::observed(before, membership, member, now);
        self.learner = learner.map(|member| watched(self.learner.take(), member));
        self.other_learner = other.map(|member| watched(self.other_learner.take(), member));
        match (learner, own, peer_url) {
            (Some(_), _, Some(peer_url)) => self.own_learner = Some(OwnLearner::new(peer_url, membership)),
            // It votes.
            (None, Some(_), _) => self.own_learner = None,
            // One that was added without an answer may be in the list later.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::etcd::simulation::{leading, learner, membership, peer_url, voter};

    fn seen(begun: &mut EtcdBegun, members: Vec<Member>) {
        let observation = Observation::Membership(membership(members));
        EtcdPart::default().put(begun, &observation, Some(&peer_url("n")), Duration::ZERO);
    }

    fn sentences(begun: &EtcdBegun) -> Vec<String> {
        begun.let_go().iter().map(Action::sentence).collect()
    }

    #[test]
    fn a_learner_is_not_abandoned_while_a_run_holds_the_lease() {
        let mut begun = EtcdBegun::default();
        let put = |begun: &mut EtcdBegun, observation: Observation, seconds| {
            let now = Duration::from_secs(seconds);
            EtcdPart::default().put(begun, &observation, Some(&peer_url("n")), now);
            begun.other_learner.as_ref().map(|learner| learner.since.as_secs())
        };
        let list = || Observation::Membership(membership(vec![leading(voter(1, "a")), learner(9, "m")]));
        let held = LeaseView::Held { holder: "a/1/m".to_owned(), renewed: Duration::from_secs(3) };
        assert_eq!(put(&mut begun, list(), 10), Some(10));
        assert_eq!(put(&mut begun, Observation::Lease(held), 200), Some(200));
        assert_eq!(put(&mut begun, Observation::Lease(LeaseView::Free), 230), Some(200));
        assert_eq!(put(&mut begun, list(), 240), Some(200));
    }

    #[test]
    fn a_run_takes_its_learner_out_before_it_releases_the_lease() {
        let first = || leading(voter(1, "a"));
        let release = Action::ReleaseLease.sentence();
        let mut begun = EtcdBegun::default();
        assert_eq!(sentences(&begun), [""; 0]);
        let lease = |begun: &mut EtcdBegun, view| {
            let observation = Observation::Lease(view);
            EtcdPart::default().put(begun, &observation, Some(&peer_url("n")), Duration::ZERO);
        };
        lease(&mut begun, LeaseView::Ours);
        assert_eq!(sentences(&begun), std::slice::from_ref(&release), "nothing was added yet");

        let add = MembershipChange::AddLearner { peer_url: peer_url("n") };
        begun.attempt(&Action::ChangeMembership(add, Arc::new(membership(vec![first()]))));
        let withdraw = "remove https://n:2380 from etcd: it has no vote yet".to_owned();
        let both = [withdraw.clone(), release.clone()];
        assert_eq!(sentences(&begun), both, "added, and the answer is not here yet");
        seen(&mut begun, vec![first()]);
        assert_eq!(sentences(&begun), both, "it may be in the list later");
        seen(&mut begun, vec![first(), learner(9, "n")]);
        assert_eq!(sentences(&begun), both);
        seen(&mut begun, vec![first(), voter(9, "n")]);
        assert_eq!(sentences(&begun), std::slice::from_ref(&release), "it votes");

        seen(&mut begun, vec![first(), learner(9, "n")]);
        assert_eq!(sentences(&begun), both, "resumed from an earlier run");
        lease(&mut begun, LeaseView::Free);
        assert_eq!(sentences(&begun), both, "the lease was lost");
        let mut resumed = EtcdBegun { own_learner: begun.own_learner.clone(), ..EtcdBegun::default() };
        assert_eq!(sentences(&resumed), [""; 0], "without the lease nothing is removed");
        lease(&mut resumed, LeaseView::Ours);
        resumed.remember(&Action::ReleaseLease);
        assert_eq!(sentences(&resumed), [""; 0], "it was released");
        begun.remember(&Action::WithdrawLearner(OwnLearner {
            peer_url: peer_url("n"),
            endpoints: Vec::new(),
        }));
        assert_eq!(sentences(&begun), [release]);
    }
}
