//! The learner that a run must not leave behind.

use serde::{Deserialize, Serialize};

use crate::etcd::member::Membership;

/// How to remove the node's own learner, whether or not its id is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnLearner {
    /// Of the learner.
    pub peer_url: String,
    /// Client URLs of the voters.
    pub endpoints: Vec<String>,
}

impl OwnLearner {
    /// Through the voters of this list.
    pub fn new(peer_url: &str, observed: &Membership) -> Self {
        let endpoints = observed.voters().flat_map(|voter| voter.client_urls.iter().cloned()).collect();
        Self { peer_url: peer_url.to_owned(), endpoints }
    }
}
