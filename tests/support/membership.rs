//! A change of etcd's members by a run, and what must hold whenever one is sent.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use metalform::etcd::member::{Member, Membership};
use metalform::etcd::membership::MembershipChange;
use metalform::kube_api::client::{ApiCall, ApiError};
use metalform::kube_api::lease::{LeaseError, LeaseSubject};
use metalform::operation::goal::peer_url;
use metalform::operation::observed::lease::LeaseView;
use metalform::operation::site::EffectError;
use tokio::time::Instant;

use super::cluster::Cluster;
use super::defect::Defect;
use super::etcd::unconfirmed;
use super::readings::Basis;
use super::site::{ModelSite, reached};

impl ModelSite {
    /// Sends it, if this run holds the lease as far as it knows. A request that is late arrives when nobody waits for
    /// it any more.
    pub fn change_membership(
        &self,
        cluster: &mut Cluster,
        change: &MembershipChange,
        seen: &Membership,
        late: Option<Duration>,
    ) -> Result<(), EffectError> {
        let now = Instant::now();
        let keeps = self.keeps_lease(cluster, now);
        if !keeps && self.defect != Some(Defect::LeaseNotChecked) {
            return Err(self.lost_lease());
        }
        let through = seen.voters().any(|voter| {
            let url = voter.peer_urls.first();
            let known = cluster.etcd.members.iter().find(|member| Some(&member.peer_url) == url);
            voter.status().is_some() && known.is_some_and(|member| member.running && member.link.answers)
        });
        if !through {
            return Err(EffectError::EtcdAct(unconfirmed()));
        }
        self.check_sending(cluster, change, seen, now);
        if self.defect == Some(Defect::LearnerNotEvicted) && matches!(change, MembershipChange::Remove { .. })
        {
            return Ok(());
        }
        if let Some(late) = late {
            if change.removes().is_some() {
                cluster.etcd.precede(change, now).map_err(EffectError::EtcdAct)?;
            }
            cluster.etcd.send_late(change.clone(), now + late);
            return Err(EffectError::EtcdAct(unconfirmed()));
        }
        self.added.fetch_or(matches!(change, MembershipChange::AddLearner { .. }), Ordering::Relaxed);
        cluster.etcd.change(change, now).map_err(EffectError::EtcdAct)?;
        if !cluster.away_after_change.is_zero() {
            cluster.away_until = Some(now + cluster.away_after_change);
        }
        Ok(())
    }

    /// The leader hands over, under the lease.
    pub fn move_leader(&self, cluster: &mut Cluster, to: u64) -> Result<(), EffectError> {
        let now = Instant::now();
        let keeps = self.keeps_lease(cluster, now);
        if !keeps && self.defect != Some(Defect::LeaseNotChecked) {
            return Err(self.lost_lease());
        }
        cluster.etcd.move_leader(to).map_err(EffectError::EtcdAct)
    }

    /// Under the lease, and by what was so when the list was read: etcd would refuse some of what must not be sent, and not
    /// all of it.
    fn check_sending(
        &self,
        cluster: &mut Cluster,
        change: &MembershipChange,
        seen: &Membership,
        now: Instant,
    ) {
        let readings = self.readings.lock().unwrap();
        let lease = cluster.lease.as_ref().filter(|lease| !lease.is_expired(now));
        let mut wrong = Vec::new();
        match lease {
            Some(lease) if lease.holder == self.run => {
                // Whatever changes after that was sent before this run had the lease, and is late.
                if readings.basis(seen).is_none_or(|basis| basis.at < lease.since) {
                    wrong.push("by a list that it read before it had the lease".to_owned());
                }
            }
            _ => {
                let holder = lease.map(|lease| &lease.holder);
                wrong.push(format!("without the lease, which {holder:?} holds"));
            }
        }
        if let Some(basis) = readings.basis(seen) {
            wrong.extend(match change.removes() {
                None => growing(change, basis),
                Some((id, _)) => self.removing(cluster, change, (id, basis)),
            });
        }
        let found = wrong.into_iter().map(|wrong| format!("{change:?} by {} {wrong}", self.run));
        cluster.violations.extend(found.collect::<Vec<_>>());
    }

    /// A voter is removed only with its node, or where its data is lost and it was asked for.
    fn removing(
        &self,
        cluster: &Cluster,
        change: &MembershipChange,
        (id, basis): (u64, &Basis),
    ) -> Vec<String> {
        if !basis.voters.contains(&id) {
            return Vec::new();
        }
        let mut wrong = losing(id, basis);
        let url = peer_url(self.address(cluster));
        let member = cluster.etcd.members.iter().find(|member| member.id == id);
        if member.is_some_and(|member| member.name != self.name() && member.peer_url != url) {
            wrong.push("whose node is another one".to_owned());
        }
        if matches!(change, MembershipChange::Replace { .. }) {
            if !basis.silent.contains(&id) {
                wrong.push("although it was healthy".to_owned());
            }
            if !self.goal.replace_member {
                wrong.push("unasked".to_owned());
            }
        }
        wrong
    }

    /// Removes the learner at a peer URL, if there is one; how many that were.
    pub fn withdraw_learner(
        &self,
        cluster: &mut Cluster,
        (peer_url, endpoints): (&str, &[String]),
        late: Option<Duration>,
    ) -> Result<usize, EffectError> {
        self.retake_lease(cluster)?;
        let observed = self.membership(cluster, endpoints, Instant::now())?;
        let ours = |member: &&Member| member.is_learner && member.peer_urls.iter().any(|url| url == peer_url);
        let Some(member) = observed.members.iter().find(ours) else { return Ok(0) };
        let change = MembershipChange::Remove { id: member.id, why: String::new() };
        self.change_membership(cluster, &change, &observed, late).map(|()| 1)
    }

    /// The lease is kept, or was taken again where it was lost.
    fn retake_lease(&self, cluster: &mut Cluster) -> Result<(), EffectError> {
        let now = Instant::now();
        if self.keeps_lease(cluster, now) {
            return Ok(());
        }
        reached(cluster, "get")?;
        match self.take_lease(cluster, now) {
            LeaseView::Held { holder, .. } => Err(EffectError::LeaseHeld { holder }),
            _ => {
                self.leased.store(true, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    /// A run that lets go of the lease leaves no learner of its own, if nothing went wrong with its requests.
    pub fn check_leaving(&self, cluster: &mut Cluster, now: Instant) {
        let url = peer_url(self.address(cluster));
        let learner = cluster.etcd.members.iter().any(|member| member.learner && member.peer_url == url);
        let keeps = self.keeps_lease(cluster, now);
        let certain = self.added.load(Ordering::Relaxed) && !self.uncertain.load(Ordering::Relaxed);
        if learner && certain && (keeps || self.defect == Some(Defect::LeaseNotChecked)) {
            cluster.violations.push(format!("{} leaves its learner", self.run));
        }
    }

    pub fn lost_lease(&self) -> EffectError {
        if !self.leased.load(Ordering::Relaxed) {
            return EffectError::NoLease;
        }
        let call = ApiCall { verb: "renew", object: "it".to_owned() };
        let source = Arc::new(ApiError::Unreachable { call, reason: "no answer".to_owned() });
        EffectError::Lease(LeaseError::Expired { subject: LeaseSubject::EtcdMembership, source })
    }
}

/// Nothing is added or promoted while a voter is not well or a database is full, and no learner is added beside another.
fn growing(change: &MembershipChange, basis: &Basis) -> Vec<String> {
    let mut wrong = Vec::new();
    let unwell = basis.unwell_besides(None);
    if !unwell.is_empty() {
        wrong.push(format!("while the voters {unwell:?} were not well"));
    }
    if matches!(change, MembershipChange::AddLearner { .. }) {
        if basis.full.is_some() {
            wrong.push("while a database was full".to_owned());
        }
        if !basis.learners.is_empty() {
            wrong.push(format!("beside the learners {:?}", basis.learners));
        }
    }
    wrong
}

/// The healthy voters are enough to agree to the removal of one, and have quorum after it. A healthy one leaves only where
/// nothing is wrong with the others; a silent one may leave beside others that are silent.
fn losing(id: u64, basis: &Basis) -> Vec<String> {
    let mut wrong = Vec::new();
    let (others, healthy) = (basis.voters.len() - 1, basis.healthy_besides(id));
    let votes = !basis.silent.contains(&id);
    let agreeing = healthy + usize::from(votes);
    if agreeing * 2 <= others + 1 || healthy * 2 <= others {
        wrong.push(format!("while {healthy} of the other {others} voters were healthy"));
    }
    let unwell = basis.unwell_besides(Some(id));
    if votes && !unwell.is_empty() {
        wrong.push(format!("although the voters {unwell:?} were unwell"));
    }
    wrong
}
