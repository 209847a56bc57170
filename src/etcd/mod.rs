//! etcd: its members, the next safe change of membership, and performing it.
//!
//! [`membership`] decides and touches nothing; [`client`] observes; [`act`] performs one change. Membership is changed
//! under the Lease of `crate::kube_api::lease`, one change at a time, and the next one is decided from a new
//! observation.

pub mod act;
pub mod client;
pub(crate) mod database_file;
pub mod defragment;
pub mod learner_watch;
pub mod member;
pub mod membership;
pub mod quorum;
pub mod reconnection;
pub mod recovery;
pub mod recovery_change;
pub mod recovery_order;
pub mod removal;
pub mod snapshot;
pub mod snapshot_copies;
pub mod snapshot_name;

#[cfg(test)]
pub(crate) mod simulation;
