//! etcd: what its members are, what may be done next, and doing that one thing.
//!
//! [`membership`] decides and touches nothing; [`client`] observes; [`act`] carries out one change. A change
//! of membership is made under the Lease of `crate::kube_api::lease`, one at a time, and what comes after it
//! is decided from a new observation.

pub mod act;
pub mod client;
pub mod member;
pub mod membership;
pub mod quorum;
pub mod table;

#[cfg(test)]
mod simulation;
