//! Removing the pods of a node whose kubelet is stopped for good from the API: nobody else does so until a controller of the
//! cluster notices, 40 s later.

use std::collections::BTreeSet;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, Preconditions};
use kube::{Client, ResourceExt};

use super::client::ApiError;
use super::pod_name::PodName;
use super::pods::of_node;
use crate::model::name::HostName;

/// Annotation of the mirror of a static pod (kubernetes.io/docs/reference/labels-annotations-taints).
pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";

/// Removes the pods of DaemonSets, also while their containers run; returns them. Those that are created in their place
/// never start.
///
/// # Errors
/// When the API does not answer or refuses.
pub async fn remove_of_daemon_sets(client: &Client, node: &HostName) -> Result<BTreeSet<PodName>, ApiError> {
    remove(client, node, is_of_daemon_set).await
}

/// Removes all pods whose containers have ended for good: not those of static pods.
///
/// # Errors
/// When the API does not answer or refuses.
pub async fn remove_ended(client: &Client, node: &HostName) -> Result<(), ApiError> {
    remove(client, node, |pod| !pod.annotations().contains_key(MIRROR)).await.map(drop)
}

pub(super) fn is_of_daemon_set(pod: &Pod) -> bool {
    pod.owner_references().iter().any(|owner| owner.kind == "DaemonSet")
}

/// One that is gone, or has been created again, is not deleted.
pub(super) async fn delete_same(api: &Api<Pod>, pod: &Pod, how: DeleteParams) -> Result<(), ApiError> {
    let same = Preconditions { uid: pod.uid(), resource_version: None };
    let deleted = api.delete(&pod.name_any(), &how.preconditions(same)).await;
    match deleted.map_err(|error| ApiError::new("delete", format!("pod/{}", PodName::of(pod)), error)) {
        Ok(_) | Err(ApiError::NotFound { .. } | ApiError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

async fn remove(
    client: &Client,
    node: &HostName,
    which: fn(&Pod) -> bool,
) -> Result<BTreeSet<PodName>, ApiError> {
    let pods = of_node(client, node).await?;
    let removed = pods.iter().filter(|pod| which(pod)).map(async |pod| {
        let api: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
        delete_same(&api, pod, DeleteParams::default().grace_period(0)).await?;
        Ok(PodName::of(pod))
    });
    // One that is refused holds up no other.
    join_all(removed).await.into_iter().collect()
}
