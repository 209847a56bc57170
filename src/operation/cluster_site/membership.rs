//! etcd's members, and the lease under which they are changed.

use std::time::Duration;

use super::ClusterSite;
use crate::engine::wait::{WaitStatus as Attempt, wait_for};
use crate::etcd::act::{ActError, perform};
use crate::etcd::client::{DEADLINE, EtcdAccess, EtcdCredentials};
use crate::etcd::membership::Change;
use crate::kube_api::lease::{LeaseAttempt, MembershipLease};
use crate::kube_api::manifests::ManifestApplyError;
use crate::operation::site::{Done, Trouble};
use crate::operation::world::{Seen, World};

/// How long other operations may hold the lease before this one gives up.
const LEASE_LIMIT: Duration = Duration::from_secs(900);

impl ClusterSite {
    /// How etcd is reached: by the members of all nodes that are known to have an API server, and this one's.
    pub(super) fn etcd(&self, world: &World) -> Result<EtcdAccess, Trouble> {
        let (certificate, key) = self.setting.layout.etcd_client();
        let credentials =
            EtcdCredentials::read(&self.setting.layout.pki().join("etcd/ca.crt"), &certificate, &key)?;
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
        Ok(EtcdAccess { endpoints, credentials, deadline: DEADLINE })
    }

    pub(super) async fn membership(&mut self, world: &World) -> Result<Seen, Trouble> {
        Ok(Seen::Membership(self.etcd(world)?.observe().await?))
    }

    pub(super) async fn change_membership(
        &mut self,
        change: &Change,
        world: &World,
    ) -> Result<Done, Trouble> {
        let access = self.etcd(world)?;
        let Some(observed) = &world.membership else { return Err(ActError::NoHealthyVoter.into()) };
        match &self.lease {
            Some(lease) => lease.run(perform(&access, observed, change)).await??,
            None => perform(&access, observed, change).await?,
        }
        Ok(Done { changed: 1 })
    }

    pub(super) async fn take_lease(&mut self) -> Result<Done, Trouble> {
        let client = self.client().await?;
        let me = format!("{}/{}/{}", self.setting.subject.name, std::process::id(), self.goal.name);
        let now = self.setting.now;
        let held = wait_for("the lease on etcd membership to be free", LEASE_LIMIT, || async {
            match MembershipLease::try_acquire(&client, &me, now).await {
                Ok(LeaseAttempt::Held(lease)) => Attempt::Holds(lease),
                Ok(LeaseAttempt::HeldBy(holder)) => Attempt::NotYet(holder.describe(now()).to_string()),
                Err(error) => error.into(),
            }
        });
        self.lease = Some(held.await.map_err(ManifestApplyError::NotServed)?);
        Ok(Done::default())
    }

    pub(super) async fn release_lease(&mut self) -> Result<Done, Trouble> {
        if let Some(lease) = self.lease.take() {
            let lost = lease.check();
            lease.release().await?;
            lost?;
        }
        Ok(Done::default())
    }
}
