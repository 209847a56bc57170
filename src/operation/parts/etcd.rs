//! etcd's members, and the lease under which they are changed.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::etcd::member::{Health, Member, Membership, Status};
use crate::etcd::membership::MembershipChange;
use crate::operation::effect::{Action, LookKey, Observation, PREDICTED_MEMBER};
use crate::operation::layer::Layer;
use crate::operation::observed::lease::LeaseView;

/// What was observed of etcd.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EtcdPart {
    /// Its members.
    pub membership: Option<Membership>,
    /// The lease on changes of them.
    pub lease: Option<LeaseView>,
}

/// What this run has begun with etcd.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EtcdBegun {
    /// Whether this run holds the lease.
    pub lease: bool,
    /// When this run first observed the node's member without a vote.
    pub learner_since: Option<Duration>,
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
                let ours =
                    |member: &Member| member.peer_urls.iter().any(|url| Some(url.as_str()) == peer_url);
                let learner = membership.members.iter().any(|member| member.is_learner && ours(member));
                begun.learner_since = learner.then(|| begun.learner_since.unwrap_or(now));
                self.membership = Some(membership.clone());
            }
            Observation::Lease(lease) => {
                begun.lease = *lease == LeaseView::Ours;
                self.lease = Some(lease.clone());
            }
            _ => {}
        }
    }

    /// Forgets what is this part's.
    pub fn forget(&mut self, key: &LookKey) {
        match key {
            LookKey::Membership => self.membership = None,
            LookKey::Lease => self.lease = None,
            _ => {}
        }
    }

    /// Takes an action as done. `name` is that of the node, and of its member.
    pub fn predict(&mut self, begun: &mut EtcdBegun, action: &Action, name: &str) {
        match action {
            Action::TakeLease => begun.lease = true,
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
            Action::ChangeMembership(MembershipChange::Remove { id, .. }, _) => {
                if let Some(membership) = &mut self.membership {
                    membership.members.retain(|member| member.id != *id);
                }
            }
            Action::Apply(Layer::First { initial_cluster, .. }, _) if self.membership.is_none() => {
                let own = initial_cluster.split_once('=').map(|(_, url)| url);
                self.membership = own.map(|peer_url| first_member(name, peer_url));
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
    /// Takes in that an action was done.
    pub fn remember(&mut self, action: &Action) {
        match action {
            Action::ReleaseLease => self.lease = false,
            Action::ChangeMembership(MembershipChange::Remove { why, .. }, _) => {
                self.learner_removed = Some(why.clone());
            }
            _ => {}
        }
    }

    /// What must not remain: other operations wait for the lease.
    pub fn let_go(&self) -> Vec<Action> {
        if self.lease { vec![Action::ReleaseLease] } else { Vec::new() }
    }
}
