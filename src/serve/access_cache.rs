//! What the bearers of tokens may do, for a short time after the API server has reviewed it. Pure; the clock is an argument.
//!
//! # Guarantees
//! - An answer is used for [`LIFETIME`] (as k8s.io/apiserver has it, `DelegatingAuthenticationOptions.CacheTTL`): a right that
//!   is withdrawn ends then.
//! - It contains no token, only digests, and at most [`ENTRIES`] of them: the answer that ends first makes room.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

use crate::kube_api::token_access::TokenAccess;

/// How long an answer is used.
const LIFETIME: SignedDuration = SignedDuration::from_secs(10);
/// How many answers are kept.
const ENTRIES: usize = 64;

/// SHA-256 of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TokenDigest([u8; 32]);

/// Answers by the digests of their tokens.
#[derive(Debug, Default)]
pub(super) struct AccessCache(BTreeMap<TokenDigest, (Timestamp, TokenAccess)>);

impl TokenDigest {
    pub(super) fn of(token: &str) -> Self {
        Self(Sha256::digest(token).into())
    }
}

impl AccessCache {
    /// The answer for a token, if there is one that is still used.
    pub(super) fn get(&self, token: TokenDigest, now: Timestamp) -> Option<TokenAccess> {
        let (since, access) = self.0.get(&token)?;
        is_used(*since, now).then(|| access.clone())
    }

    /// Keeps the answer that was given now.
    pub(super) fn keep(&mut self, token: TokenDigest, access: TokenAccess, now: Timestamp) {
        self.0.retain(|other, (since, _)| *other != token && is_used(*since, now));
        while self.0.len() >= ENTRIES {
            let oldest = self.0.iter().min_by_key(|(_, (since, _))| *since).map(|(token, _)| *token);
            let Some(oldest) = oldest else { break };
            self.0.remove(&oldest);
        }
        self.0.insert(token, (now, access));
    }
}

/// A clock that was set back ends it too.
fn is_used(since: Timestamp, now: Timestamp) -> bool {
    since <= now && now.duration_since(since) < LIFETIME
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn an_answer_is_used_for_ten_seconds_and_for_its_token_alone() {
        let mut cache = AccessCache::default();
        let (one, other) = (TokenDigest::of("one"), TokenDigest::of("other"));
        cache.keep(one, TokenAccess::Allowed, at(100));
        cache.keep(other, TokenAccess::Unauthenticated, at(101));
        for (token, now, expected) in [
            (one, 100, Some(TokenAccess::Allowed)),
            (one, 109, Some(TokenAccess::Allowed)),
            (one, 110, None),
            (one, 99, None),
            (other, 105, Some(TokenAccess::Unauthenticated)),
            (TokenDigest::of("One"), 105, None),
        ] {
            assert_eq!(cache.get(token, at(now)), expected, "{token:?} {now}");
        }
        cache.keep(one, TokenAccess::Forbidden { user: "a".to_owned() }, at(105));
        assert_eq!(cache.get(one, at(114)), Some(TokenAccess::Forbidden { user: "a".to_owned() }));
    }

    #[test]
    fn tokens_without_end_take_no_more_room() {
        let mut cache = AccessCache::default();
        for number in 0..1_000_i64 {
            cache.keep(TokenDigest::of(&number.to_string()), TokenAccess::Unauthenticated, at(number / 200));
        }
        assert_eq!(cache.0.len(), ENTRIES);
        assert!(cache.get(TokenDigest::of("999"), at(5)).is_some(), "the last one is kept");
        cache.keep(TokenDigest::of("late"), TokenAccess::Allowed, at(60));
        assert_eq!(cache.0.len(), 1, "answers that are not used any more are dropped");
    }
}
