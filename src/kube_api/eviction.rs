//! The pods that must leave a node before it is removed, and evicting them: PodDisruptionBudgets are honoured, since only
//! the eviction API does (kubernetes.io/docs/concepts/scheduling-eviction/api-eviction).

use std::fmt;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, EvictParams, PostParams, Preconditions};
use kube::{Client, ResourceExt};

use super::FIELD_MANAGER;
use super::client::ApiError;
use super::pods::of_node;
use crate::model::api_contract::MANAGED_BY;
use crate::model::name::HostName;

/// Annotation of the mirror of a static pod (kubernetes.io/docs/reference/labels-annotations-taints).
const MIRROR: &str = "kubernetes.io/config.mirror";

/// The name of a pod. Displays as `NAMESPACE/NAME`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodName {
    /// Its namespace.
    pub namespace: String,
    /// Its own name.
    pub name: String,
}

/// A pod that must leave its node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrainPod {
    /// Its name.
    pub name: PodName,
    /// Whether it is being deleted already.
    pub terminating: bool,
    /// Whether a controller creates another one elsewhere.
    pub managed: bool,
    /// Why it may not be evicted now: the PodDisruptionBudget, as the API server words it.
    pub blocked: Option<String>,
}

/// The pods that must leave a node: not those of DaemonSets, static pods or pods that have ended. Whether each may be
/// evicted is asked in a dry run, which changes nothing.
///
/// # Errors
/// When the API does not answer or refuses. The client must not retry by itself: a budget is answered with 429.
pub async fn pods_to_drain(client: &Client, node: &HostName) -> Result<Vec<DrainPod>, ApiError> {
    let pods = of_node(client, node).await?;
    let leaving = pods.iter().filter(|pod| must_leave(pod)).map(|pod| async {
        let name = PodName { namespace: pod.namespace().unwrap_or_default(), name: pod.name_any() };
        let terminating = pod.metadata.deletion_timestamp.is_some();
        let blocked = if terminating { None } else { request(client, &name, true).await? };
        let managed = is_managed(pod);
        Ok(DrainPod { name, terminating, managed, blocked })
    });
    join_all(leaving).await.into_iter().collect()
}

/// Evicts a pod; false where its budget does not allow it now.
///
/// # Errors
/// As [`pods_to_drain`].
pub async fn evict(client: &Client, pod: &PodName) -> Result<bool, ApiError> {
    Ok(request(client, pod, false).await?.is_none())
}

/// Deletes a pod of a node without regard to its budget. One that is gone, or has been created again on another node,
/// is not deleted.
///
/// # Errors
/// When the API does not answer or refuses.
pub async fn delete(client: &Client, pod: &PodName, node: &HostName) -> Result<(), ApiError> {
    let api: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace);
    let object = || format!("pod/{pod}");
    let found = api.get_opt(&pod.name).await.map_err(|error| ApiError::new("get", object(), error))?;
    let on = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    let Some(found) = found.filter(|found| on(found).as_deref() == Some(node.as_str())) else {
        return Ok(());
    };
    let same = Preconditions { uid: found.uid(), resource_version: None };
    let deleted = api.delete(&pod.name, &DeleteParams::default().preconditions(same)).await;
    match deleted.map_err(|error| ApiError::new("delete", object(), error)) {
        Ok(_) | Err(ApiError::NotFound { .. } | ApiError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Why the eviction is not allowed. A pod that is gone needs none.
async fn request(client: &Client, pod: &PodName, dry_run: bool) -> Result<Option<String>, ApiError> {
    let api: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace);
    let post_options = PostParams { dry_run, ..PostParams::default() };
    let evicted = api.evict(&pod.name, &EvictParams { post_options, ..EvictParams::default() }).await;
    match evicted {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(kube::Error::Api(status)) if status.code == 429 => Ok(Some(reason(&status))),
        Err(error) => Err(ApiError::new("evict", format!("pod/{pod}"), error)),
    }
}

/// The message, and which budget it is: the API server puts that into the causes.
fn reason(status: &kube::core::Status) -> String {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let causes: Vec<&str> =
        causes.map(|cause| cause.message.as_str()).filter(|one| !one.is_empty()).collect();
    if causes.is_empty() { status.message.clone() } else { causes.join("; ") }
}

/// Whether it is not missed: a controller creates another one, or it is the reachability pod of a run that was killed.
fn is_managed(pod: &Pod) -> bool {
    pod.owner_references().iter().any(|owner| owner.controller == Some(true))
        || pod.labels().get(MANAGED_BY).is_some_and(|manager| manager == FIELD_MANAGER)
}

fn must_leave(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let of_daemon_set = pod.owner_references().iter().any(|owner| owner.kind == "DaemonSet");
    let is_mirror = pod.annotations().contains_key(MIRROR);
    !of_daemon_set && !is_mirror && !matches!(phase, Some("Succeeded" | "Failed"))
}

impl fmt::Display for PodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_controller_of_the_node_runs_stays_until_the_node_is_gone() {
        let pod = |value| serde_json::from_value::<Pod>(value).unwrap();
        let owner = |kind: &str| json!([{ "kind": kind, "name": "x", "apiVersion": "apps/v1", "uid": "1", "controller": true }]);
        let cases = [
            (json!({ "metadata": { "name": "web", "ownerReferences": owner("ReplicaSet") } }), true),
            (json!({ "metadata": { "name": "alone" } }), true),
            (json!({ "metadata": { "name": "agent", "ownerReferences": owner("DaemonSet") } }), false),
            (json!({ "metadata": { "name": "etcd-n1", "annotations": { MIRROR: "1" } } }), false),
            (json!({ "metadata": { "name": "job" }, "status": { "phase": "Succeeded" } }), false),
            (json!({ "metadata": { "name": "job" }, "status": { "phase": "Failed" } }), false),
            (json!({ "metadata": { "name": "job" }, "status": { "phase": "Running" } }), true),
            // Its data is lost with the pod, as with kubectl drain --delete-emptydir-data.
            (
                json!({ "metadata": { "name": "cache" }, "spec": { "containers": [], "volumes": [{ "name": "a", "emptyDir": {} }] } }),
                true,
            ),
            (json!({ "metadata": { "name": "going", "deletionTimestamp": "2026-01-01T00:00:00Z" } }), true),
        ];
        for (value, leaves) in cases {
            assert_eq!(must_leave(&pod(value.clone())), leaves, "{value}");
        }
        let ours = json!({ "metadata": { "name": "r", "labels": { MANAGED_BY: "metalform" } } });
        let alone = json!({ "metadata": { "name": "alone" } });
        let web = json!({ "metadata": { "name": "web", "ownerReferences": owner("ReplicaSet") } });
        for (value, managed) in [(ours, true), (alone, false), (web, true)] {
            assert_eq!(is_managed(&pod(value.clone())), managed, "{value}");
        }
    }

    #[test]
    fn a_budget_is_named_by_its_cause() {
        let status = |value| serde_json::from_value::<kube::core::Status>(value).unwrap();
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        let cause = "The disruption budget web needs 2 healthy pods and has 2 currently";
        assert_eq!(reason(&status(json!({ "code": 429, "message": message }))), message);
        let details = json!({ "causes": [{ "reason": "DisruptionBudget", "message": cause }] });
        assert_eq!(reason(&status(json!({ "code": 429, "message": message, "details": details }))), cause);
    }
}
