//! etcd's members, and the lease under which they are changed.

use std::time::Duration;

use futures::channel::oneshot;
use tokio::task::JoinHandle;

use super::ClusterSite;
use crate::etcd::act::{ActError, perform};
use crate::etcd::client::{Access, Credentials, DEADLINE};
use crate::etcd::membership::Change;
use crate::kube_api::client::ApiError;
use crate::kube_api::lease::{LeaseError, MembershipLease};
use crate::operation::site::{Done, Trouble};
use crate::operation::world::{Seen, World};

/// How long other operations may hold the lease before this one gives up.
const LEASE_LIMIT: Duration = Duration::from_secs(900);

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
    /// How etcd is reached: by the members of all nodes that are known to have an API server, and this one's.
    pub(super) fn etcd(&self, world: &World) -> Result<Access, Trouble> {
        let (certificate, key) = self.setting.layout.etcd_client();
        let credentials =
            Credentials::read(&self.setting.layout.pki().join("etcd/ca.crt"), &certificate, &key)?;
        let mut endpoints = vec![format!("https://{}:2379", self.setting.subject.address)];
        if let Some(seen) = &world.membership {
            endpoints = seen
                .voters()
                .flat_map(|member| member.client_urls.iter().cloned())
                .chain(endpoints)
                .collect();
            endpoints.sort();
            endpoints.dedup();
        } else if let Some(peers) = &world.peers {
            let others =
                peers.values().filter(|peer| peer.api_server).filter_map(|peer| peer.control_plane_ip);
            endpoints.extend(others.map(|ip| format!("https://{ip}:2379")));
        }
        Ok(Access { endpoints, credentials, deadline: DEADLINE })
    }

    pub(super) async fn membership(&mut self, world: &World) -> Result<Seen, Trouble> {
        Ok(Seen::Membership(self.etcd(world)?.observe().await?))
    }

    pub(super) async fn change_membership(
        &mut self,
        change: &Change,
        world: &World,
    ) -> Result<Done, Trouble> {
        if let Some(lease) = self.lease.take_if(|lease| lease.keeper.is_finished()) {
            return Err(lost(lease.keeper.await));
        }
        let Some(observed) = &world.membership else { return Err(ActError::NobodyToAsk.into()) };
        perform(&self.etcd(world)?, observed, change).await?;
        Ok(Done { changed: 1 })
    }

    pub(super) async fn take_lease(&mut self) -> Result<Done, Trouble> {
        let client = self.client().await?;
        let me = format!("{}/{}/{}", self.setting.subject.name, std::process::id(), self.goal.name);
        let now = self.setting.now;
        let (release, released) = oneshot::channel::<()>();
        let (held, holding) = oneshot::channel();
        let keeper = tokio::spawn(async move {
            let clock = move || now();
            let lease = match MembershipLease::acquire(&client, &me, &clock, LEASE_LIMIT).await {
                Ok(lease) => lease,
                Err(error) => {
                    // Whoever waits is told, unless it is gone.
                    let _ = held.send(Err(error));
                    return Ok(());
                }
            };
            let _ = held.send(Ok(()));
            lease.hold(released).await.map_err(LeaseEnd::Lost)?.unwrap_or_default();
            lease.release().await.map_err(LeaseEnd::NotReleased)
        });
        holding.await.unwrap_or(Ok(()))?;
        self.lease = Some(HeldLease { release, keeper });
        Ok(Done::default())
    }

    pub(super) async fn release_lease(&mut self) -> Result<Done, Trouble> {
        let Some(lease) = self.lease.take() else { return Ok(Done::default()) };
        // A keeper that has ended already is told nothing.
        let _ = lease.release.send(());
        match lease.keeper.await {
            Ok(Ok(())) => Ok(Done::default()),
            ended => Err(lost(ended)),
        }
    }
}

fn lost(ended: Result<Result<(), LeaseEnd>, tokio::task::JoinError>) -> Trouble {
    match ended {
        Ok(Err(LeaseEnd::Lost(error))) => Trouble::Lease(error),
        Ok(Err(LeaseEnd::NotReleased(error))) => Trouble::Api(error),
        Ok(Ok(())) | Err(_) => Trouble::EtcdAct(ActError::NobodyToAsk),
    }
}
