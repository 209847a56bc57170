//! The admission policy that refuses metalform's keys to node identities (`templates/cluster/node-policy.yaml.j2`).

use axum::http::HeaderValue;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams, Request, Resource};
use kube::core::Status;
use kube::{Client, Error};
use serde_json::json;

use super::client::ApiError;
use crate::model::api_contract::POLICY_PROBE;
use crate::model::name::HostName;

/// Name of the ValidatingAdmissionPolicy.
pub const NAME: &str = "metalform-node-identities";

/// Whether the API server enforces the policy for the identity of this node, whose Node exists.
///
/// A policy that exists need not be enforced: its binding may be missing, restricted or not watched yet. So a change that
/// nothing but the policy refuses is sent as that node, in a dry run, which changes nothing.
///
/// # Errors
/// When the API does not answer, or refuses for another reason.
pub async fn is_enforced(client: &Client, node: &HostName) -> Result<bool, ApiError> {
    let object = || format!("node/{node} in a dry run as system:node:{node}");
    let failed = |error| ApiError::new("patch", object(), error);
    let patch = Patch::Merge(json!({ "metadata": { "annotations": { POLICY_PROBE: "refused" } } }));
    let parameters = PatchParams { dry_run: true, ..PatchParams::default() };
    let request = Request::new(Node::url_path(&(), None)).patch(node.as_str(), &parameters, &patch);
    let mut request = request.map_err(|error| failed(Error::BuildRequest(error)))?;
    let identity = [
        ("impersonate-user", format!("system:node:{node}")),
        ("impersonate-group", "system:nodes".to_owned()),
    ];
    for (name, value) in identity {
        let value = HeaderValue::try_from(value).map_err(|error| failed(Error::HttpError(error.into())))?;
        request.headers_mut().insert(name, value);
    }
    match client.request::<Node>(request).await {
        Ok(_) => Ok(false),
        Err(Error::Api(status)) if is_refusal(&status) => Ok(true),
        Err(error) => Err(failed(error)),
    }
}

/// Whether it was this policy that refused
/// (`staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/validating/dispatcher.go`).
fn is_refusal(status: &Status) -> bool {
    status.code == 403 && status.message.contains(&format!("ValidatingAdmissionPolicy '{NAME}'"))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use axum::http::{Request, Response};
    use kube::client::Body;

    use super::*;

    /// What is answered with this status and message, and the request's line, query and identity.
    async fn asked(code: u16, message: &str) -> (String, String) {
        let seen: Arc<Mutex<String>> = Arc::default();
        let (message, recorder) = (message.to_owned(), seen.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let header = |name| request.headers()[name].to_str().unwrap().to_owned();
            *recorder.lock().unwrap() = format!(
                "{} {} {} {}",
                request.method(),
                request.uri(),
                header("impersonate-user"),
                header("impersonate-group")
            );
            let body = match code {
                200 => json!({ "metadata": { "name": "n1" } }),
                _ => json!({ "status": "Failure", "code": code, "message": message, "reason": "Forbidden" }),
            };
            let response = Response::builder().status(code).body(Body::from(body.to_string().into_bytes()));
            async move { response.map_err(tower::BoxError::from) }
        });
        let client = Client::new(service, "default");
        let enforced = match is_enforced(&client, &"n1".parse().unwrap()).await {
            Ok(enforced) => enforced.to_string(),
            Err(error) => error.to_string(),
        };
        let seen = seen.lock().unwrap().clone();
        (enforced, seen)
    }

    #[tokio::test]
    async fn the_policy_is_enforced_when_it_refuses_the_node_its_own_annotation() {
        let refusal = "nodes \"n1\" is forbidden: ValidatingAdmissionPolicy 'metalform-node-identities' with binding \
                       'metalform-node-identities' denied request: no";
        let (enforced, request) = asked(403, refusal).await;
        assert_eq!(enforced, "true");
        assert_eq!(request, "PATCH /api/v1/nodes/n1?&dryRun=All system:node:n1 system:nodes");
        assert_eq!(asked(200, "").await.0, "false", "the change was accepted");
        for message in
            ["users \"admin\" cannot impersonate", "ValidatingAdmissionPolicy 'other' denied request"]
        {
            let expected =
                format!("cannot patch node/n1 in a dry run as system:node:n1: forbidden: {message}");
            assert_eq!(asked(403, message).await.0, expected, "another refusal does not count");
        }
    }

    #[test]
    fn the_policy_has_the_name_and_the_prefixes_of_the_contract() {
        use crate::model::api_contract::{RESERVED_NODE_PREFIXES, ROLE_LABEL_PREFIX};
        let template = include_str!("../../templates/cluster/node-policy.yaml.j2");
        assert_eq!(template.matches(&format!("metadata: {{ name: {NAME} }}")).count(), 2);
        assert!(template.contains(&format!("policyName: {NAME}\n")));
        let reserved = RESERVED_NODE_PREFIXES.iter().filter(|prefix| **prefix != ROLE_LABEL_PREFIX);
        let reserved: Vec<String> = reserved.map(|prefix| format!("'{prefix}'")).collect();
        assert!(template.contains(&format!("\"[{}]\"", reserved.join(", "))), "{reserved:?}");
    }
}
