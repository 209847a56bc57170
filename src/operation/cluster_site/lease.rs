//! The lease on etcd membership: who holds it, one attempt to take it, and releasing it.

use super::ClusterSite;
use crate::kube_api::lease::{
    self, HeldLease, LeaseAttempt, LeaseError, LeaseHolder, LeaseState, LeaseSubject,
};
use crate::operation::effect::{Observation, Returned};
use crate::operation::observed::lease::LeaseView;
use crate::operation::site::EffectError;

impl ClusterSite {
    fn identity(&self) -> String {
        format!("{}/{}/{}", self.workspace.subject.name, std::process::id(), self.goal.name)
    }

    /// The own one until it is lost; from then on it is free, unless another process has taken it.
    pub(super) async fn lease_view(&self) -> Result<Observation, EffectError> {
        if self.keeps_lease().await {
            return Ok(Observation::Lease(LeaseView::Ours));
        }
        let now = (self.workspace.now)();
        let state =
            lease::state(&self.client().await?, LeaseSubject::EtcdMembership, &self.identity(), now).await?;
        // A lost one would stop what needs none.
        self.lease.lock().await.take_if(|lease| !lease.is_releasing());
        Ok(Observation::Lease(match state {
            LeaseState::Free | LeaseState::Ours => LeaseView::Free,
            LeaseState::HeldBy(holder) => self.held_by(&holder),
        }))
    }

    fn held_by(&self, holder: &LeaseHolder) -> LeaseView {
        let age = (self.workspace.now)().duration_since(holder.renewed);
        LeaseView::Held { holder: holder.name.clone(), renewed: age.try_into().unwrap_or_default() }
    }

    async fn keeps_lease(&self) -> bool {
        self.lease.lock().await.as_ref().is_some_and(|lease| lease.check().is_ok())
    }

    /// The lease is kept, or was taken again where it was lost.
    pub(super) async fn retake_lease(&self) -> Result<(), EffectError> {
        if self.keeps_lease().await {
            return Ok(());
        }
        match self.take_lease().await?.observed.pop() {
            Some(Observation::Lease(LeaseView::Held { holder, .. })) => {
                Err(EffectError::LeaseHeld { holder })
            }
            _ => Ok(()),
        }
    }

    /// One attempt. Where another process holds it, its name is what was observed.
    pub(super) async fn take_lease(&self) -> Result<Returned, EffectError> {
        let client = self.client().await?;
        let (subject, clock) = (LeaseSubject::EtcdMembership, self.workspace.now);
        let attempt = HeldLease::try_acquire(&client, subject, &self.identity(), clock).await?;
        let view = match attempt {
            LeaseAttempt::Held(lease) => {
                *self.lease.lock().await = Some(lease);
                LeaseView::Ours
            }
            LeaseAttempt::HeldBy(holder) => {
                *self.lease.lock().await = None;
                self.held_by(&holder)
            }
        };
        Ok(Returned { changed: 0, observed: vec![Observation::Lease(view)] })
    }

    pub(super) async fn release_lease(&self) -> Result<Returned, EffectError> {
        let mut held = self.lease.lock().await;
        let Some(lease) = held.as_mut() else { return Ok(Returned::default()) };
        let lost = if lease.is_releasing() { Ok(()) } else { lease.check() };
        // Kept where this fails: the next attempt releases it.
        lease.release().await?;
        *held = None;
        match lost {
            // While etcd restarted, it was not renewed. What needed it is done, or was dropped.
            Ok(()) | Err(LeaseError::Expired { .. }) => Ok(Returned::default()),
            Err(lost) => Err(lost.into()),
        }
    }
}
