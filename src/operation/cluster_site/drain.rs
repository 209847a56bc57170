//! The pods of a node that is removed, and its Node object.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures::future::join_all;
use tokio::time::timeout;

use super::ClusterSite;
use crate::kube_api::client::ApiError;
use crate::kube_api::eviction;
use crate::kube_api::nodes;
use crate::kube_api::pod_name::PodName;
use crate::kube_api::pods::{self, ExpectedPod};
use crate::model::api_contract::{API_SERVER, CORDONED};
use crate::model::name::HostName;
use crate::operation::effect::{Observation, Returned};
use crate::operation::site::EffectError;

/// Where an API server listens.
const API_SERVER_PORT: u16 = 6443;
/// How long a connection to one may take.
const CONNECT: Duration = Duration::from_secs(2);

impl ClusterSite {
    pub(super) async fn pods_to_drain(&self) -> Result<Observation, EffectError> {
        let client = self.client().await?;
        Ok(Observation::PodsToDrain(eviction::pods_to_drain(&client, &self.goal.name).await?))
    }

    /// Pods whose budget allows it no longer stay; the next look shows them.
    pub(super) async fn evict_pods(&self, pods: &BTreeSet<PodName>) -> Result<Returned, EffectError> {
        let client = self.client().await?;
        let evicted = join_all(pods.iter().map(|pod| eviction::evict(&client, pod))).await;
        let mut changed = 0;
        for (pod, refusal) in pods.iter().zip(evicted) {
            match refusal?.map(|refusal| refusal.into_error(pod)) {
                None => changed += 1,
                Some(None) => {}
                Some(Some(error)) => return Err(error.into()),
            }
        }
        Ok(Returned { changed, observed: Vec::new() })
    }

    pub(super) async fn cordon(&self) -> Result<Returned, EffectError> {
        let at = (self.workspace.now)().to_string();
        self.set_unschedulable(true, Some(at)).await
    }

    /// A Node that was deleted meanwhile needs none of it.
    pub(super) async fn uncordon(&self) -> Result<Returned, EffectError> {
        match self.set_unschedulable(false, None).await {
            Err(EffectError::Api(ApiError::NotFound { .. })) => Ok(Returned::default()),
            other => other,
        }
    }

    async fn set_unschedulable(&self, on: bool, mark: Option<String>) -> Result<Returned, EffectError> {
        let marks = BTreeMap::from([(CORDONED.to_owned(), mark)]);
        let changed = nodes::set_unschedulable(&self.client().await?, &self.goal.name, on, &marks).await?;
        Ok(Returned { changed: usize::from(changed), observed: Vec::new() })
    }

    pub(super) async fn withdraw_api_server(&self) -> Result<Returned, EffectError> {
        self.set_annotations(BTreeMap::from([(API_SERVER.to_owned(), None)])).await
    }

    pub(super) async fn delete_node(&self) -> Result<Returned, EffectError> {
        let deleted = nodes::delete(&self.client().await?, &self.goal.name).await?;
        Ok(Returned { changed: usize::from(deleted), observed: Vec::new() })
    }

    /// Ready by its kubelet, and there: the API knows of a host that has just lost its power only after a while.
    pub(super) async fn api_servers(
        &self,
        addresses: &BTreeMap<String, IpAddr>,
    ) -> Result<Observation, EffectError> {
        let each = addresses.iter().map(|(name, address)| async move {
            Ok::<_, EffectError>((name.clone(), self.api_server_complaint(name, *address).await?))
        });
        let servers = join_all(each).await.into_iter().collect::<Result<BTreeMap<_, _>, _>>()?;
        Ok(Observation::ApiServers(servers))
    }

    async fn api_server_complaint(&self, name: &str, address: IpAddr) -> Result<Option<String>, EffectError> {
        let client = self.client().await?;
        // The name of a Node is one: it is not reached by a name that is none.
        let Ok(name) = name.parse::<HostName>() else { return Ok(Some("invalid name".to_owned())) };
        let found = pods::of_node(&client, &name).await?;
        let expected = [ExpectedPod::Static("kube-apiserver".to_owned())];
        if let Some(missing) = pods::missing(&found, &name, &expected, &BTreeMap::new()).pop() {
            return Ok(Some(missing));
        }
        let socket = SocketAddr::new(address, API_SERVER_PORT);
        Ok(match timeout(CONNECT, self.ports.network.connect(socket)).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(format!("{socket}: {error}")),
            Err(_) => Some(format!("{socket}: no answer in {} s", CONNECT.as_secs())),
        })
    }
}
