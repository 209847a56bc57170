//! The HTTPS server of `/metrics`, for clients with a token that the API server accepts and RBAC allows to read it.
//!
//! # Guarantees
//! - Nothing is reported without a TokenReview and a SubjectAccessReview for the path, whose answers are used again for some
//!   seconds ([`super::access_cache`]). Where the API server does not answer, the request is refused.
//! - Peers have few connections, and the API server few reviews at the same time.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use jiff::Timestamp;
use kube::Client;
use prometheus_client::encoding::prometheus_text::CONTENT_TYPE;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use super::access_cache::{AccessCache, TokenDigest};
use super::connection_limit::ConnectionLimit;
use super::secure_listener::{ListenConfig, ListenError, SecureListener};
use crate::kube_api::client::ApiError;
use crate::kube_api::token_access::{self, TokenAccess};

/// The path, which is also the non-resource URL of RBAC.
const PATH: &str = "/metrics";
/// Connections of one peer.
const PER_PEER: usize = 8;
/// Connections of all peers.
const IN_ALL: usize = 64;
/// Requests whose token the API server reviews at the same time.
const REVIEWS: usize = 4;
/// Deadline of the reviews of a request. Prometheus waits for 10 s unless it is configured otherwise.
const REVIEW: Duration = Duration::from_secs(5);

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
    source: MetricsSource,
    clock: fn() -> Timestamp,
    cache: Mutex<AccessCache>,
    reviews: Semaphore,
}

impl MetricsServer {
    /// Reads the certificate and listens.
    ///
    /// # Errors
    /// When the certificate or the address cannot be used.
    pub async fn bind(config: &ListenConfig, source: MetricsSource) -> Result<Self, ListenError> {
        let listener = SecureListener::bind(config).await?;
        let (cache, reviews) = (Mutex::default(), Semaphore::new(REVIEWS));
        let scrapes = Arc::new(Scrapes { source, clock: config.clock, cache, reviews });
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
    match scrapes.access(token).await {
        Ok(TokenAccess::Allowed) => {
            ([(header::CONTENT_TYPE, CONTENT_TYPE)], (scrapes.source.text)()).into_response()
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

/// The token of `Authorization: Bearer TOKEN` (RFC 6750); the scheme in any case (RFC 9110).
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

impl Scrapes {
    fn cache(&self) -> MutexGuard<'_, AccessCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn access(&self, token: &str) -> Result<TokenAccess, ApiError> {
        let digest = TokenDigest::of(token);
        if let Some(access) = self.cache().get(digest, (self.clock)()) {
            return Ok(access);
        }
        let silent = || ApiError::silent("create", "tokenreview");
        let access = timeout(REVIEW, self.review(token)).await.map_err(|_| silent())??;
        self.cache().keep(digest, access.clone(), (self.clock)());
        Ok(access)
    }

    async fn review(&self, token: &str) -> Result<TokenAccess, ApiError> {
        let _permit = self.reviews.acquire().await;
        let client = self.source.client.borrow().clone();
        let client = client.ok_or_else(|| ApiError::silent("create", "tokenreview"))?;
        token_access::may_get(&client, token, PATH).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_what_follows_the_scheme() {
        for (header, expected) in [
            ("Bearer abc.def", Some("abc.def")),
            ("bearer  abc", Some("abc")),
            ("Bearer", None),
            ("Bearer ", None),
            ("Basic YTpi", None),
            ("abc", None),
            ("", None),
        ] {
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, header.parse().unwrap())]);
            assert_eq!(bearer(&headers), expected, "{header}");
        }
        assert_eq!(bearer(&HeaderMap::new()), None);
    }
}
