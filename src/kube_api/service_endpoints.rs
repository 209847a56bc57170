//! The pods to which Services send requests.

use std::collections::BTreeSet;

use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use kube::Client;
use kube::api::{Api, ListParams};

use super::client::ApiError;
use super::pod_name::PodName;

/// Those of these pods to which Services send requests.
///
/// # Errors
/// When the API does not answer or refuses.
pub async fn serving(client: &Client, pods: &BTreeSet<PodName>) -> Result<BTreeSet<PodName>, ApiError> {
    if pods.is_empty() {
        return Ok(BTreeSet::new());
    }
    let api: Api<EndpointSlice> = Api::all(client.clone());
    let listed = api.list(&ListParams::default()).await;
    let listed = listed.map_err(|error| ApiError::new("list", "endpointslices", error))?;
    let endpoints = listed.items.iter().flat_map(|slice| &slice.endpoints);
    Ok(endpoints.filter_map(ready_pod).filter(|pod| pods.contains(pod)).collect())
}

/// An unknown readiness is to be taken for ready (discovery.k8s.io/v1, EndpointConditions).
fn ready_pod(endpoint: &Endpoint) -> Option<PodName> {
    let is_ready = endpoint.conditions.as_ref().and_then(|conditions| conditions.ready) != Some(false);
    let target = endpoint.target_ref.as_ref().filter(|target| target.kind.as_deref() == Some("Pod"))?;
    let (namespace, name) = (target.namespace.clone()?, target.name.clone()?);
    is_ready.then_some(PodName { namespace, name })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_service_sends_requests_to_what_is_not_known_to_be_unready() {
        let pod = json!({ "kind": "Pod", "namespace": "kube-system", "name": "coredns-1" });
        let cases = [
            (json!({ "addresses": [], "targetRef": pod, "conditions": { "ready": true } }), true),
            (json!({ "addresses": [], "targetRef": pod, "conditions": {} }), true),
            (json!({ "addresses": [], "targetRef": pod }), true),
            // One that is being deleted.
            (
                json!({ "addresses": [], "targetRef": pod,
                        "conditions": { "ready": false, "serving": true, "terminating": true } }),
                false,
            ),
            // An API server, of no pod.
            (json!({ "addresses": [], "conditions": { "ready": true } }), false),
            (json!({ "addresses": [], "targetRef": { "kind": "Node", "name": "n1" } }), false),
        ];
        for (endpoint, expected) in cases {
            let found = ready_pod(&serde_json::from_value(endpoint.clone()).unwrap());
            let name = PodName { namespace: "kube-system".to_owned(), name: "coredns-1".to_owned() };
            assert_eq!(found, expected.then_some(name), "{endpoint}");
        }
    }
}
