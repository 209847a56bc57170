//! The Kubernetes API: nodes, pods, join tokens, manifests, one Lease, and waiting by name.
//!
//! [`wait::wait_for`] is the only place that sleeps. What a function tried is in its error
//! ([`client::ApiError`]), so that nobody has to add it.

pub mod client;
pub mod lease;
pub mod manifests;
pub mod nodes;
pub mod pods;
pub mod tokens;
pub mod wait;

/// As whom fields are owned (KEP-555, server-side apply).
pub const FIELD_MANAGER: &str = "metalform";
