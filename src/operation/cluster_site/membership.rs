//! etcd's members.

use super::ClusterSite;
use crate::etcd::act::perform;
use crate::etcd::client::{Access, Credentials, DEADLINE};
use crate::etcd::member::Membership;
use crate::etcd::membership::MembershipChange;
use crate::operation::effect::{Observation, Returned};
use crate::operation::goal::client_url;
use crate::operation::site::EffectError;

impl ClusterSite {
    /// etcd at these endpoints, and at the member of this machine.
    fn etcd(&self, endpoints: impl IntoIterator<Item = String>) -> Result<Access, EffectError> {
        let layout = &self.workspace.layout;
        let (certificate, key) = layout.etcd_client();
        let credentials = Credentials::read(&layout.pki().join("etcd/ca.crt"), &certificate, &key)?;
        let mut endpoints: Vec<String> =
            endpoints.into_iter().chain([client_url(self.workspace.subject.address)]).collect();
        endpoints.sort();
        endpoints.dedup();
        Ok(Access { endpoints, credentials, deadline: DEADLINE })
    }

    pub(super) async fn membership(&self, endpoints: &[String]) -> Result<Observation, EffectError> {
        Ok(Observation::Membership(self.etcd(endpoints.iter().cloned())?.observe().await?))
    }

    pub(super) async fn change_membership(
        &self,
        change: &MembershipChange,
        observed: &Membership,
    ) -> Result<Returned, EffectError> {
        self.check_lease().await?;
        let endpoints = observed.voters().flat_map(|member| member.client_urls.iter().cloned());
        perform(&self.etcd(endpoints)?, observed, change).await?;
        Ok(Returned { changed: 1, observed: Vec::new() })
    }
}
