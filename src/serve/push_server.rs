//! The HTTPS server that accepts pushes of users' images, and passes them to the registry's socket.
//!
//! # Guarantees
//! - Nothing is read or written without a token that the API server accepts and whose bearer RBAC allows to `put` the
//!   non-resource URL [`ACCESS_PATH`]. The server has no rights of its own: each token is reviewed with that token.
//! - Images of bundles are not written, and no image is removed ([`super::push_request`]).
//! - A manifest has at most 4 MiB and a blob, in as many requests as it is sent, at most the limit of the configuration. A
//!   client that sends nothing for [`STALL`] is disconnected; connections end as those of [`super::connections`] do.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::connection_limit::ConnectionLimit;
use super::connections::STALL;
use super::credentials::bearer_or_password;
use super::limited_body::{BodyFault, limited, too_large};
use super::push_request::{PushRequest, Refusal, parse};
use super::secure_listener::{ListenConfig, ListenError, SecureListener};
use super::token_reviewer::TokenReviewer;
use crate::kube_api::token_access::{self, ReviewServer, TokenAccess};
use crate::pki::tls_provider::install_tls_provider;
use crate::registry::manifest;

/// The non-resource URL of RBAC; the verb is `put`.
pub const ACCESS_PATH: &str = "/metalform/images";
/// Connections of one peer. docker pushes five layers at the same time.
const PER_PEER: usize = 16;
/// Connections of all peers.
const IN_ALL: usize = 64;
/// Headers of a request that are passed on.
const PASSED: [HeaderName; 6] = [
    header::ACCEPT,
    header::CONTENT_LENGTH,
    header::CONTENT_RANGE,
    header::CONTENT_TYPE,
    header::IF_NONE_MATCH,
    header::RANGE,
];
/// Headers of a response that concern the connection to the registry only (RFC 9110 section 7.6.1).
const DROPPED: [HeaderName; 4] = [header::CONNECTION, header::TE, header::TRAILER, header::TRANSFER_ENCODING];

/// Configuration of the server.
#[derive(Debug, Clone)]
pub struct PushConfig {
    /// Address and certificate.
    pub listen: ListenConfig,
    /// Socket of the registry that accepts writes.
    pub registry: PathBuf,
    /// The images of bundles, each with the bundle's version of Kubernetes.
    pub images: BTreeMap<String, String>,
    /// Largest blob, in bytes.
    pub blob_limit: u64,
    /// Reviews tokens.
    pub api: ReviewServer,
}

/// Why the server does not start.
#[derive(Debug, thiserror::Error)]
pub enum PushServerError {
    /// The address or the certificate.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// No client for the registry's socket.
    #[error("cannot use the registry's socket")]
    Client(#[from] reqwest::Error),
}

/// A server that is listening.
pub struct PushServer {
    listener: SecureListener,
    router: Router,
}

struct Pushes {
    reviewer: TokenReviewer,
    registry: reqwest::Client,
    images: BTreeMap<String, String>,
    blob_limit: u64,
}

impl PushServer {
    /// Reads the certificate and listens.
    ///
    /// # Errors
    /// When the certificate or the address cannot be used.
    pub async fn bind(config: PushConfig) -> Result<Self, PushServerError> {
        let listener = SecureListener::bind(&config.listen).await?;
        // The client is built with TLS even though it uses plain HTTP here.
        install_tls_provider();
        let registry = reqwest::Client::builder().unix_socket(config.registry).no_proxy().build()?;
        let api = Arc::new(config.api);
        let reviewer = TokenReviewer::new(config.listen.clock, move |token| {
            let api = api.clone();
            async move { token_access::own_access(&api, &token, ("put", ACCESS_PATH)).await }
        });
        let (images, blob_limit) = (config.images, config.blob_limit);
        let pushes = Arc::new(Pushes { reviewer, registry, images, blob_limit });
        Ok(Self { listener, router: Router::new().fallback(respond).with_state(pushes) })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Serves until `shutdown` is ready; requests in progress are completed.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) {
        self.listener.serve(self.router, ConnectionLimit::new(PER_PEER, IN_ALL), shutdown).await;
    }
}

async fn respond(State(pushes): State<Arc<Pushes>>, request: Request) -> Response {
    match pushes.answer(request).await {
        Ok(response) => response,
        Err(refusal) => refused(&refusal),
    }
}

/// The error document of the distribution-spec.
fn refused(refusal: &Refusal) -> Response {
    let body = json!({ "errors": [{ "code": refusal.code, "message": refusal.message }] }).to_string();
    let mut response = (refusal.status, [(header::CONTENT_TYPE, "application/json")], body).into_response();
    if refusal.status == StatusCode::UNAUTHORIZED {
        let challenge = header::HeaderValue::from_static("Basic realm=\"metalform\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

impl Pushes {
    async fn answer(&self, request: Request) -> Result<Response, Refusal> {
        self.authorize(request.headers()).await?;
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let kind = parse(&method, &path, &self.images)?;
        let url = target(request.uri(), &kind);
        let limit = match kind {
            // A blob in the POST that begins its upload is left out; the client sends it again, as the distribution-spec has it.
            PushRequest::Version | PushRequest::Read | PushRequest::Upload => None,
            PushRequest::Manifest => Some(manifest::LIMIT),
            PushRequest::Blob => Some(self.blob_limit.saturating_sub(self.uploaded(&url).await?)),
        };
        if let Some(limit) =
            limit.filter(|limit| content_length(request.headers()).is_some_and(|length| length > *limit))
        {
            return Err(too_large(limit));
        }
        self.forward(request, url, limit).await
    }

    async fn authorize(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let unauthorized = || {
            Refusal::new(
                StatusCode::UNAUTHORIZED,
                "UNAUTHORIZED",
                "a token of the cluster is required as password",
            )
        };
        let token = bearer_or_password(headers).ok_or_else(unauthorized)?;
        match self.reviewer.access(&token).await {
            Ok(TokenAccess::Allowed) => Ok(()),
            Ok(TokenAccess::Unauthenticated) => Err(unauthorized()),
            Ok(TokenAccess::Forbidden { user }) => {
                let message = format!("user {user:?} cannot put path {ACCESS_PATH:?}");
                Err(Refusal::new(StatusCode::FORBIDDEN, "DENIED", message))
            }
            Err(error) => {
                tracing::warn!(%error, "cannot verify a token");
                Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE", "cannot verify the token"))
            }
        }
    }

    /// How many bytes of the blob the registry has.
    async fn uploaded(&self, upload: &str) -> Result<u64, Refusal> {
        let status = self.registry.get(upload).send().await.map_err(|error| unreachable_registry(&error))?;
        Ok(status.headers().get(header::RANGE).and_then(|range| end(range.to_str().ok()?)).unwrap_or(0))
    }

    async fn forward(&self, request: Request, url: String, limit: Option<u64>) -> Result<Response, Refusal> {
        let (head, body) = request.into_parts();
        let mut forwarded = self.registry.request(head.method.clone(), url);
        for name in PASSED.into_iter().filter(|name| limit.is_some() || *name != header::CONTENT_LENGTH) {
            if let Some(value) = head.headers.get(&name) {
                forwarded = forwarded.header(name, value);
            }
        }
        // With both, the registry returns locations at this server.
        if let Some(host) = head.headers.get(header::HOST) {
            forwarded = forwarded.header(header::HOST, host).header("x-forwarded-proto", "https");
        }
        let fault = BodyFault::default();
        if let Some(limit) = limit {
            forwarded = forwarded.body(reqwest::Body::wrap_stream(limited(body, limit, STALL, &fault)));
        }
        let answered = forwarded.send().await;
        if let Some(refusal) = fault.get() {
            return Err(refusal);
        }
        let answered = answered.map_err(|error| unreachable_registry(&error))?;
        let mut response = Response::new(Body::empty());
        *response.status_mut() = answered.status();
        *response.headers_mut() = answered.headers().clone();
        for name in DROPPED {
            response.headers_mut().remove(name);
        }
        if head.method != Method::HEAD {
            *response.body_mut() = Body::from_stream(answered.bytes_stream());
        }
        Ok(response)
    }
}

/// Where the registry has it; without the query of a manifest, in which a later version of the distribution-spec has tags.
fn target(uri: &Uri, kind: &PushRequest) -> String {
    let query = uri.query().filter(|_| *kind != PushRequest::Manifest);
    format!("http://registry{}{}", uri.path(), query.map(|query| format!("?{query}")).unwrap_or_default())
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The size of what `0-LAST` is the range of. The registry's `0-0` is nothing, or one byte.
fn end(range: &str) -> Option<u64> {
    range.trim_start_matches("bytes=").split_once('-')?.1.parse::<u64>().ok()?.checked_add(1)
}

fn unreachable_registry(error: &reqwest::Error) -> Refusal {
    tracing::warn!(%error, "cannot reach the registry");
    Refusal::new(StatusCode::BAD_GATEWAY, "UNAVAILABLE", "cannot reach the registry of the cluster")
}
