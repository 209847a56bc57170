//! The read-only front of the registry: requests of containerd to a mirror, forwarded to the distribution
//! registry on the loopback interface.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::time::timeout;

use super::forwarded_headers;
use crate::registry::image_name::is_host;

/// Deadline of connecting on the loopback interface.
const CONNECT: Duration = Duration::from_secs(5);
/// Deadline of the header of the registry's response.
const RESPONSE: Duration = Duration::from_secs(30);
/// Largest buffer of a connection to the registry.
const BUFFER: usize = 64 * 1024;

/// The registry, and a client of it.
#[derive(Clone)]
pub(super) struct Upstream {
    address: SocketAddr,
    client: Client<HttpConnector, Body>,
}

impl Upstream {
    pub(super) fn new(address: SocketAddr) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT));
        let client = Client::builder(TokioExecutor::new()).http1_max_buf_size(BUFFER).build(connector);
        Self { address, client }
    }
}

/// Forwards a request without its body, which GET and HEAD do not have; the body of the response is streamed.
pub(super) async fn forward(State(upstream): State<Upstream>, request: Request) -> Response {
    let (mut head, _) = request.into_parts();
    let Some(target) = target(&head.uri) else {
        return (StatusCode::BAD_REQUEST, "the ns parameter is not a host name of a registry\n")
            .into_response();
    };
    let Ok(uri) = format!("http://{}{target}", upstream.address).parse() else {
        return (StatusCode::BAD_REQUEST, "the path is not valid in a URL\n").into_response();
    };
    head.uri = uri;
    head.headers = forwarded_headers::of_request(head.headers);
    let answered = upstream.client.request(Request::from_parts(head, Body::empty()));
    match timeout(RESPONSE, answered).await {
        Ok(Ok(response)) => {
            let mut response = response.map(Body::new);
            *response.headers_mut() = forwarded_headers::of_response(std::mem::take(response.headers_mut()));
            response
        }
        Err(_) => {
            tracing::warn!(registry = %upstream.address, "the registry does not answer");
            (StatusCode::GATEWAY_TIMEOUT, format!("the registry on {} does not answer\n", upstream.address))
                .into_response()
        }
        Ok(Err(error)) => {
            tracing::warn!(registry = %upstream.address, %error, "cannot reach the registry");
            (StatusCode::BAD_GATEWAY, format!("cannot reach the registry on {}\n", upstream.address))
                .into_response()
        }
    }
}

/// Path and query for the registry. containerd names the upstream registry in `ns`; here that host is the
/// first part of the repository's name. `None` when `ns` is not a host.
fn target(uri: &Uri) -> Option<String> {
    let pairs = || uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let kept: Vec<_> = pairs().filter(|pair| !pair.starts_with("ns=")).collect();
    let query = if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) };
    let path = uri.path();
    let repository = path.strip_prefix("/v2/").filter(|rest| !rest.is_empty() && !rest.starts_with('_'));
    match (repository, pairs().find_map(|pair| pair.strip_prefix("ns="))) {
        (Some(rest), Some(host)) if is_host(host) => Some(format!("/v2/{host}/{rest}{query}")),
        (Some(_), Some(_)) => None,
        _ => Some(format!("{path}{query}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upstream_registry_becomes_a_part_of_the_name() {
        let cases = [
            ("/v2/", Some("/v2/")),
            ("/v2/?ns=registry.k8s.io", Some("/v2/")),
            (
                "/v2/kube-apiserver/manifests/v1.35.4?ns=registry.k8s.io",
                Some("/v2/registry.k8s.io/kube-apiserver/manifests/v1.35.4"),
            ),
            ("/v2/a/tags/list?n=5&ns=docker.io&last=x", Some("/v2/docker.io/a/tags/list?n=5&last=x")),
            (
                "/v2/registry.k8s.io/pause/manifests/3.10.1",
                Some("/v2/registry.k8s.io/pause/manifests/3.10.1"),
            ),
            ("/v2/_catalog?ns=docker.io", Some("/v2/_catalog")),
            ("/v2/a/manifests/b?ns=", None),
            ("/v2/a/manifests/b?ns=..", None),
            ("/v2/a/manifests/b?ns=x%2F..", None),
            ("/v2/a/manifests/b?ns=host%3A5000", None),
        ];
        for (requested, expected) in cases {
            assert_eq!(target(&requested.parse().unwrap()).as_deref(), expected, "{requested}");
        }
    }
}
