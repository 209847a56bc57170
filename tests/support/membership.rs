//! A change of etcd's members by a run, and what must hold whenever one is sent.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use metalform::etcd::member::{Member, Membership};
use metalform::etcd::membership::MembershipChange;
use metalform::kube_api::client::{ApiCall, ApiError};
use metalform::kube_api::lease::{LeaseError, LeaseSubject};
use metalform::operation::goal::peer_url;
use metalform::operation::site::EffectError;
use tokio::time::Instant;

use super::cluster::Cluster;
use super::defect::Defect;
use super::etcd::unconfirmed;
use super::host::address;
use super::site::ModelSite;

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
        let keeps = cluster.lease.as_ref().is_some_and(|lease| lease.is_kept(&self.run, now));
        if !keeps && self.defect != Some(Defect::LeaseNotChecked) {
            return Err(self.lost_lease(cluster));
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
        let had_quorum = cluster.etcd.has_quorum();
        cluster.etcd.change(change, now).map_err(EffectError::EtcdAct)?;
        let undisturbed =
            self.basis(seen).is_some_and(|basis| cluster.disturbed.is_none_or(|at| at < basis.at));
        if had_quorum && !cluster.etcd.has_quorum() && undisturbed {
            cluster.violations.push(format!("{change:?} by {} cost the quorum", self.run));
        }
        if !cluster.away_after_change.is_zero() {
            cluster.away_until = Some(now + cluster.away_after_change);
        }
        Ok(())
    }

    /// The leader hands over, under the lease.
    pub fn move_leader(&self, cluster: &mut Cluster, to: u64) -> Result<(), EffectError> {
        let now = Instant::now();
        let keeps = cluster.lease.as_ref().is_some_and(|lease| lease.is_kept(&self.run, now));
        if !keeps && self.defect != Some(Defect::LeaseNotChecked) {
            return Err(self.lost_lease(cluster));
        }
        cluster.etcd.move_leader(to).map_err(EffectError::EtcdAct)
    }

    /// Under the lease; and nothing is added or promoted while a voter is not well or a database is full.
    fn check_sending(
        &self,
        cluster: &mut Cluster,
        change: &MembershipChange,
        seen: &Membership,
        now: Instant,
    ) {
        let mut wrong = Vec::new();
        let holder = cluster.lease.as_ref().filter(|lease| !lease.is_expired(now)).map(|lease| &lease.holder);
        if holder != Some(&self.run) {
            wrong.push(format!("without the lease, which {holder:?} holds"));
        }
        let basis = self.basis(seen);
        let grows = change.removes().is_none();
        if let Some(basis) = basis.filter(|_| grows) {
            if !basis.unwell.is_empty() {
                wrong.push(format!("while the voters {:?} were not well", basis.unwell));
            }
            if basis.full && matches!(change, MembershipChange::AddLearner { .. }) {
                wrong.push("while a database was full".to_owned());
            }
        }
        let found = wrong.into_iter().map(|wrong| format!("{change:?} by {} {wrong}", self.run));
        cluster.violations.extend(found);
    }

    /// Removes the learner at a peer URL, if there is one; how many that were.
    pub fn withdraw_learner(
        &self,
        cluster: &mut Cluster,
        (peer_url, endpoints): (&str, &[String]),
        late: Option<Duration>,
    ) -> Result<usize, EffectError> {
        let observed = self.membership(cluster, endpoints, Instant::now())?;
        let ours = |member: &&Member| member.is_learner && member.peer_urls.iter().any(|url| url == peer_url);
        let Some(member) = observed.members.iter().find(ours) else { return Ok(0) };
        let change = MembershipChange::Remove { id: member.id, why: String::new() };
        self.change_membership(cluster, &change, &observed, late).map(|()| 1)
    }

    /// A run that lets go of the lease leaves no learner of its own, if nothing went wrong with its requests.
    pub fn check_leaving(&self, cluster: &mut Cluster, now: Instant) {
        let url = peer_url(address(cluster.hosts[self.name()].number));
        let learner = cluster.etcd.members.iter().any(|member| member.learner && member.peer_url == url);
        let keeps = cluster.lease.as_ref().is_some_and(|lease| lease.is_kept(&self.run, now));
        let certain = self.added.load(Ordering::Relaxed) && !self.uncertain.load(Ordering::Relaxed);
        if learner && certain && (keeps || self.defect == Some(Defect::LeaseNotChecked)) {
            cluster.violations.push(format!("{} leaves its learner", self.run));
        }
    }

    pub fn lost_lease(&self, cluster: &Cluster) -> EffectError {
        if cluster.lease.as_ref().is_none_or(|lease| lease.holder != self.run) {
            return EffectError::NoLease;
        }
        let call = ApiCall { verb: "renew", object: "it".to_owned() };
        let source = Arc::new(ApiError::Unreachable { call, reason: "no answer".to_owned() });
        EffectError::Lease(LeaseError::Expired { subject: LeaseSubject::EtcdMembership, source })
    }
}
