//! The HTTPS server of `/metrics`, for clients with a token that the API server accepts and RBAC allows to read it.
//!
//! # Guarantees
//! - Nothing is reported without a TokenReview and a SubjectAccessReview for the path, whose answers are used again for some
//!   seconds ([`super::access_cache`]). Where the API server does not answer, the request is refused.
//! - Peers have few connections, and the API server few reviews at the same time.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use kube::Client;
use prometheus_client::encoding::prometheus_text::CONTENT_TYPE;
use tokio::sync::watch;

use super::connection_limit::ConnectionLimit;
use super::credentials::bearer;
use super::secure_listener::{ListenConfig, ListenError, SecureListener};
use super::token_reviewer::TokenReviewer;
use crate::kube_api::client::ApiError;
use crate::kube_api::token_access::{self, TokenAccess};

/// The path, which is also the non-resource URL of RBAC.
const PATH: &str = "/metrics";
/// Connections of one peer.
const PER_PEER: usize = 8;
/// Connections of all peers.
const IN_ALL: usize = 64;

/// Where its content comes from.
#[derive(Clone)]
pub struct MetricsSource {
    /// The metrics, in the text format of Prometheus.
    pub text: Arc<dyn Fn() -> String + Send + Sync>,
    /// The present client of the API, once there is one.
    pub client: watch::Receiver<Option<Client>>,
}

/// A server that is listening.
pub struct MetricsServer {
    listener: SecureListener,
    router: Router,
}

struct Scrapes {
    text: Arc<dyn Fn() -> String + Send + Sync>,
    reviewer: TokenReviewer,
}

impl MetricsServer {
    /// Reads the certificate and listens.
    ///
    /// # Errors
    /// When the certificate or the address cannot be used.
    pub async fn bind(config: &ListenConfig, source: MetricsSource) -> Result<Self, ListenError> {
        let listener = SecureListener::bind(config).await?;
        let MetricsSource { text, client } = source;
        let reviewer = TokenReviewer::new(config.clock, move |token| {
            let client = client.borrow().clone();
            async move {
                let client = client.ok_or_else(|| ApiError::silent("create", "tokenreview"))?;
                token_access::may_get(&client, &token, PATH).await
            }
        });
        let scrapes = Arc::new(Scrapes { text, reviewer });
        let router = Router::new().route(PATH, get(respond)).with_state(scrapes);
        Ok(Self { listener, router })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Serves until `shutdown` is ready.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) {
        self.listener.serve(self.router, ConnectionLimit::new(PER_PEER, IN_ALL), shutdown).await;
    }
}

async fn respond(State(scrapes): State<Arc<Scrapes>>, headers: HeaderMap) -> Response {
    let Some(token) = bearer(&headers) else { return unauthorized() };
    match scrapes.reviewer.access(&token).await {
        Ok(TokenAccess::Allowed) => {
            ([(header::CONTENT_TYPE, CONTENT_TYPE)], (scrapes.text)()).into_response()
        }
        Ok(TokenAccess::Unauthenticated) => unauthorized(),
        Ok(TokenAccess::Forbidden { user }) => {
            (StatusCode::FORBIDDEN, format!("user {user:?} cannot get path {PATH:?}\n")).into_response()
        }
        Err(error) => {
            tracing::warn!(%error, "metrics: cannot verify a token");
            (StatusCode::SERVICE_UNAVAILABLE, "cannot verify the token\n").into_response()
        }
    }
}

fn unauthorized() -> Response {
    (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")], "a valid bearer token is required\n")
        .into_response()
}
