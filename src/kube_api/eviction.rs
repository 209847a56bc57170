//! The pods that must leave a node before it is removed, and evicting them: PodDisruptionBudgets are honoured, since only
//! the eviction API does (kubernetes.io/docs/concepts/scheduling-eviction/api-eviction).

use std::fmt;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, EvictParams, PostParams};
use kube::core::Status;
use kube::{Client, ResourceExt};

use super::FIELD_MANAGER;
use super::client::ApiError;
use super::pod_name::PodName;
use super::pod_removal::{MIRROR, delete_same, is_of_daemon_set};
use super::pods::of_node;
use crate::model::api_contract::MANAGED_BY;
use crate::model::name::HostName;

/// A pod that must leave its node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrainPod {
    /// Its name.
    pub name: PodName,
    /// Whether it is being deleted already.
    pub terminating: bool,
    /// Whether a controller creates another one elsewhere.
    pub managed: bool,
    /// Why it may not be evicted now: a PodDisruptionBudget or another refusal, as the API server words it.
    pub blocked: Option<String>,
}

/// Why the API server does not evict a pod now. Displays as the API server words it, with the budget in it.
#[derive(Debug, Clone, PartialEq)]
pub struct EvictionRefusal(Box<Status>);

impl EvictionRefusal {
    /// The error that it is for a pod whose eviction was allowed in a dry run; `None` for a budget, which changes at any
    /// time.
    pub fn into_error(self, pod: &PodName) -> Option<ApiError> {
        let is_budget = self.0.code == 429;
        (!is_budget).then(|| ApiError::new("evict", format!("pod/{pod}"), kube::Error::Api(self.0)))
    }
}

/// The pods that must leave a node: not those of DaemonSets, static pods or pods that have ended. Whether each may be
/// evicted is asked in a dry run, which changes nothing.
///
/// # Errors
/// When the API does not answer, or not to this client. The client must not retry by itself: a budget is answered with
/// 429.
pub async fn pods_to_drain(client: &Client, node: &HostName) -> Result<Vec<DrainPod>, ApiError> {
    let pods = of_node(client, node).await?;
    let leaving = pods.iter().filter(|pod| must_leave(pod)).map(|pod| async {
        let name = PodName::of(pod);
        let terminating = pod.metadata.deletion_timestamp.is_some();
        let refusal = if terminating { None } else { request(client, &name, true).await? };
        let blocked = refusal.map(|refusal| refusal.to_string());
        let managed = is_managed(pod);
        Ok(DrainPod { name, terminating, managed, blocked })
    });
    join_all(leaving).await.into_iter().collect()
}

/// Evicts a pod; returns why that is not allowed now.
///
/// # Errors
/// As [`pods_to_drain`].
pub async fn evict(client: &Client, pod: &PodName) -> Result<Option<EvictionRefusal>, ApiError> {
    request(client, pod, false).await
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
    delete_same(&api, &found, DeleteParams::default()).await
}

async fn request(client: &Client, pod: &PodName, dry_run: bool) -> Result<Option<EvictionRefusal>, ApiError> {
    let api: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace);
    let post_options = PostParams { dry_run, ..PostParams::default() };
    let answer = api.evict(&pod.name, &EvictParams { post_options, ..EvictParams::default() }).await;
    refusal(answer).map_err(|error| ApiError::new("evict", format!("pod/{pod}"), error))
}

/// What an answer means for this pod. A pod that is gone needs no eviction; invalid credentials and a timeout are errors,
/// since they are none of the pod's.
fn refusal(answer: kube::Result<Status>) -> kube::Result<Option<EvictionRefusal>> {
    match answer {
        // A pod with several budgets: HTTP 201, and a failure in the body (Kubernetes, `EvictionREST.Create`).
        Ok(status) if status.is_failure() => Ok(Some(EvictionRefusal(status.boxed()))),
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) => match status.code {
            404 => Ok(None),
            401 | 408 | 504 => Err(kube::Error::Api(status)),
            _ => Ok(Some(EvictionRefusal(status))),
        },
        Err(error) => Err(error),
    }
}

/// Whether it is not missed: a controller creates another one, or it is the reachability pod of a run that was killed.
fn is_managed(pod: &Pod) -> bool {
    pod.owner_references().iter().any(|owner| owner.controller == Some(true))
        || pod.labels().get(MANAGED_BY).is_some_and(|manager| manager == FIELD_MANAGER)
}

fn must_leave(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let is_mirror = pod.annotations().contains_key(MIRROR);
    !is_of_daemon_set(pod) && !is_mirror && !matches!(phase, Some("Succeeded" | "Failed"))
}

impl fmt::Display for EvictionRefusal {
    /// The API server puts the budget into the causes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(status) = self;
        let causes = status.details.iter().flat_map(|details| &details.causes);
        let causes: Vec<&str> =
            causes.map(|cause| cause.message.as_str()).filter(|one| !one.is_empty()).collect();
        match causes.is_empty() {
            true if status.message.is_empty() => write!(f, "refused with status {}", status.code),
            true => f.write_str(&status.message),
            false => f.write_str(&causes.join("; ")),
        }
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
    fn whatever_refuses_one_pod_blocks_it() {
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        let cause = "The disruption budget web needs 2 healthy pods and has 2 currently";
        let details = json!({ "causes": [{ "reason": "DisruptionBudget", "message": cause }] });
        let two = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        let webhook = "admission webhook \"pods.example.com\" denied the request: not now";
        let blocked = |text: &str| Some(Some(text.to_owned()));
        // The HTTP status, its body, and why the pod is blocked; `None` for an error.
        for (http, status, expected) in [
            (201, json!({ "status": "Success", "code": 201 }), Some(None)),
            (201, json!({ "status": "Failure", "message": two, "code": 500 }), blocked(two)),
            (404, json!({ "status": "Failure", "message": "not found", "code": 404 }), Some(None)),
            (429, json!({ "status": "Failure", "message": message, "code": 429 }), blocked(message)),
            (
                429,
                json!({ "status": "Failure", "message": message, "code": 429, "details": details }),
                blocked(cause),
            ),
            (403, json!({ "status": "Failure", "message": webhook, "code": 403 }), blocked(webhook)),
            (
                500,
                json!({ "status": "Failure", "message": "failed calling webhook", "code": 500 }),
                blocked("failed calling webhook"),
            ),
            (500, json!({ "status": "Failure", "code": 500 }), blocked("refused with status 500")),
            (401, json!({ "status": "Failure", "message": "Unauthorized", "code": 401 }), None),
            (504, json!({ "status": "Failure", "message": "Timeout", "code": 504 }), None),
        ] {
            let parsed: Status = serde_json::from_value(status.clone()).unwrap();
            // As kube does: by the HTTP status alone.
            let answer = if http < 400 { Ok(parsed) } else { Err(kube::Error::Api(parsed.boxed())) };
            let shown = refusal(answer).ok().map(|refusal| refusal.map(|refusal| refusal.to_string()));
            assert_eq!(shown, expected, "{http} {status}");
        }
    }

    #[test]
    fn a_refusal_after_a_dry_run_that_allowed_it_is_an_error_unless_a_budget_has_changed() {
        let pod = PodName { namespace: "a".to_owned(), name: "web".to_owned() };
        for (code, expected) in
            [(429, None), (500, Some("cannot evict pod/a/web: the API server is not ready: x"))]
        {
            let refusal = EvictionRefusal(Status::failure("x", "").with_code(code).boxed());
            assert_eq!(refusal.into_error(&pod).map(|error| error.to_string()).as_deref(), expected);
        }
    }
}
