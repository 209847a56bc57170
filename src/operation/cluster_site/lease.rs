//! The lease on etcd membership: who holds it, one attempt to take it, and renewing it meanwhile.

use std::time::Duration;

use futures::channel::oneshot;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::Api;
use tokio::task::{JoinError, JoinHandle};

use super::ClusterSite;
use crate::kube_api::client::ApiError;
use crate::kube_api::lease::{EXPIRY, LeaseError, MembershipLease, NAME, Take, take};
use crate::operation::effect::{Observation, Returned};
use crate::operation::observed::lease::LeaseView;
use crate::operation::site::EffectError;

/// How long an attempt to take the lease may last.
const ATTEMPT: Duration = Duration::from_secs(5);

/// The lease while a task of its own renews it.
pub(super) struct HeldLease {
    release: oneshot::Sender<()>,
    keeper: JoinHandle<Result<(), LeaseEnd>>,
}

/// Why the lease is no longer held.
enum LeaseEnd {
    Lost(LeaseError),
    NotReleased(ApiError),
}

impl ClusterSite {
    fn identity(&self) -> String {
        format!("{}/{}/{}", self.workspace.subject.name, std::process::id(), self.goal.name)
    }

    pub(super) async fn lease_view(&self) -> Result<Observation, EffectError> {
        let api: Api<Lease> = Api::namespaced(self.client().await?, "kube-system");
        let found = api.get_opt(NAME).await;
        let found =
            found.map_err(|error| ApiError::new("get", format!("lease/kube-system/{NAME}"), error))?;
        let spec = found.and_then(|lease| lease.spec).unwrap_or_default();
        Ok(Observation::Lease(match take(&spec, &self.identity(), (self.workspace.now)()) {
            Take::Free | Take::Ours => LeaseView::Free,
            Take::HeldBy { who, left } => {
                LeaseView::Held { holder: who, renewed: EXPIRY.saturating_sub(left) }
            }
        }))
    }

    /// One attempt. Where another process was faster, its name is what was observed.
    pub(super) async fn take_lease(&self) -> Result<Returned, EffectError> {
        let (client, me, now) = (self.client().await?, self.identity(), self.workspace.now);
        let (release, released) = oneshot::channel::<()>();
        let (held, holding) = oneshot::channel();
        let keeper = tokio::spawn(async move {
            let clock = move || now();
            let lease = match MembershipLease::acquire(&client, &me, &clock, ATTEMPT).await {
                Ok(lease) => lease,
                Err(error) => {
                    // The caller may have given up.
                    let _ = held.send(Err(error));
                    return Ok(());
                }
            };
            let _ = held.send(Ok(()));
            lease.hold(released).await.map_err(LeaseEnd::Lost)?.unwrap_or_default();
            lease.release().await.map_err(LeaseEnd::NotReleased)
        });
        let view = match holding.await {
            Ok(Ok(())) => {
                *self.lease.lock().await = Some(HeldLease { release, keeper });
                Observation::Lease(LeaseView::Ours)
            }
            Ok(Err(LeaseError::Busy(_))) => self.lease_view().await?,
            Ok(Err(error)) => return Err(error.into()),
            Err(oneshot::Canceled) => return Err(ended(keeper.await)),
        };
        Ok(Returned { changed: 0, observed: vec![view] })
    }

    pub(super) async fn release_lease(&self) -> Result<Returned, EffectError> {
        let Some(lease) = self.lease.lock().await.take() else { return Ok(Returned::default()) };
        // A keeper that has ended already is not listening.
        let _ = lease.release.send(());
        match lease.keeper.await {
            Ok(Ok(())) => Ok(Returned::default()),
            other => Err(ended(other)),
        }
    }

    /// The lease is held at this moment.
    pub(super) async fn check_lease(&self) -> Result<(), EffectError> {
        let mut held = self.lease.lock().await;
        match held.take_if(|lease| lease.keeper.is_finished()) {
            Some(lease) => Err(ended(lease.keeper.await)),
            None if held.is_none() => Err(EffectError::NoLease),
            None => Ok(()),
        }
    }
}

fn ended(end: Result<Result<(), LeaseEnd>, JoinError>) -> EffectError {
    match end {
        Ok(Err(LeaseEnd::Lost(error))) => EffectError::Lease(error),
        Ok(Err(LeaseEnd::NotReleased(error))) => EffectError::Api(error),
        Ok(Ok(())) => EffectError::NoLease,
        Err(source) => EffectError::LeaseTask { source },
    }
}
