//! What the bearers of tokens may do, as the API server decides it: few reviews at the same time, each with a deadline, and
//! their answers used again for some seconds ([`super::access_cache`]).

use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::access_cache::{AccessCache, TokenDigest};
use crate::kube_api::client::ApiError;
use crate::kube_api::token_access::TokenAccess;

/// Requests whose token the API server reviews at the same time.
const REVIEWS: usize = 4;
/// Deadline of the reviews of a request. Prometheus waits for 10 s unless it is configured otherwise.
const REVIEW: Duration = Duration::from_secs(5);

type Review = dyn Fn(String) -> BoxFuture<'static, Result<TokenAccess, ApiError>> + Send + Sync;

/// Decides what the bearers of tokens may do.
pub(super) struct TokenReviewer {
    review: Box<Review>,
    clock: fn() -> Timestamp,
    cache: Mutex<AccessCache>,
    reviews: Semaphore,
}

impl TokenReviewer {
    /// With this review of one token.
    pub(super) fn new<F>(
        clock: fn() -> Timestamp,
        review: impl Fn(String) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<TokenAccess, ApiError>> + Send + 'static,
    {
        let review: Box<Review> = Box::new(move |token| Box::pin(review(token)));
        Self { review, clock, cache: Mutex::default(), reviews: Semaphore::new(REVIEWS) }
    }

    /// What the bearer of this token may do.
    pub(super) async fn access(&self, token: &str) -> Result<TokenAccess, ApiError> {
        let digest = TokenDigest::of(token);
        if let Some(access) = self.cache().get(digest, (self.clock)()) {
            return Ok(access);
        }
        let review = async {
            let _permit = self.reviews.acquire().await;
            (self.review)(token.to_owned()).await
        };
        let silent = |_| ApiError::silent("review", "token");
        let access = timeout(REVIEW, review).await.map_err(silent)??;
        self.cache().keep(digest, access.clone(), (self.clock)());
        Ok(access)
    }

    fn cache(&self) -> MutexGuard<'_, AccessCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
