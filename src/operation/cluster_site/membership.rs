//! etcd's members.

use std::sync::Arc;

use super::ClusterSite;
use super::ports::EtcdPort;
use crate::etcd::act::{move_leader, perform, withdraw};
use crate::etcd::client::{DEADLINE, EtcdAccess, EtcdConnector, EtcdCredentials};
use crate::etcd::member::Membership;
use crate::etcd::membership::MembershipChange;
use crate::operation::effect::{Observation, OwnLearner, Returned};
use crate::operation::goal::{client_url, member_urls};
use crate::operation::site::EffectError;
use crate::workspace::node_records;

impl ClusterSite {
    /// etcd at these endpoints, and at the member of this machine.
    fn etcd(&self, endpoints: impl IntoIterator<Item = String>) -> Result<EtcdAccess, EffectError> {
        let layout = &self.workspace.layout;
        let connector: Arc<dyn EtcdConnector> = match &self.ports.etcd {
            EtcdPort::Connector(connector) => connector.clone(),
            EtcdPort::Credentials => {
                let (certificate, key) = layout.etcd_client();
                Arc::new(EtcdCredentials::read(&layout.pki().join("etcd/ca.crt"), &certificate, &key)?)
            }
        };
        let mut endpoints: Vec<String> =
            endpoints.into_iter().chain([client_url(self.workspace.subject.address)]).collect();
        endpoints.sort();
        endpoints.dedup();
        Ok(EtcdAccess { endpoints, connector, deadline: DEADLINE })
    }

    /// Without an API no other node is known: through the members of the Nodes that are recorded then.
    pub(super) async fn membership(&self, endpoints: &[String]) -> Result<Observation, EffectError> {
        let endpoints = match endpoints {
            [] => member_urls(&node_records::of_cluster(&self.workspace.layout).unwrap_or_default()),
            known => known.to_vec(),
        };
        Ok(Observation::Membership(self.etcd(endpoints)?.observe().await?))
    }

    /// Through the member of this machine alone. One that does not run, or has no quorum, does not answer.
    pub(super) async fn own_member(&self) -> Observation {
        let answer = match self.etcd([]) {
            Ok(access) => access.observe().await.ok(),
            Err(_) => None,
        };
        Observation::OwnMember(answer)
    }

    pub(super) async fn change_membership(
        &self,
        change: &MembershipChange,
        observed: &Membership,
    ) -> Result<Returned, EffectError> {
        let endpoints = observed.voters().flat_map(|member| member.client_urls.iter().cloned());
        let access = self.etcd(endpoints)?;
        let held = self.lease.lock().await;
        let lease = held.as_ref().ok_or(EffectError::NoLease)?;
        lease.run(perform(&access, observed, change)).await??;
        Ok(Returned { changed: 1, observed: Vec::new() })
    }

    pub(super) async fn move_leader(&self, to: u64, observed: &Membership) -> Result<Returned, EffectError> {
        let access = self.etcd([])?;
        let held = self.lease.lock().await;
        let lease = held.as_ref().ok_or(EffectError::NoLease)?;
        lease.run(move_leader(&access, observed, to)).await??;
        Ok(Returned::default())
    }

    pub(super) async fn withdraw_learner(&self, learner: &OwnLearner) -> Result<Returned, EffectError> {
        let access = self.etcd(learner.endpoints.iter().cloned())?;
        self.retake_lease().await?;
        let held = self.lease.lock().await;
        let lease = held.as_ref().ok_or(EffectError::NoLease)?;
        let removed = lease.run(withdraw(&access, &learner.peer_url)).await??;
        Ok(Returned { changed: usize::from(removed), observed: Vec::new() })
    }
}
