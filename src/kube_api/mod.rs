//! The Kubernetes API: nodes, pods, join tokens, manifests and one Lease.
//!
//! What a function tried is in its error ([`client::ApiError`]), so that nobody has to add it.

pub mod client;
pub mod lease;
pub mod manifests;
pub mod node_addresses;
mod node_manifest;
pub mod nodes;
pub mod pods;
pub mod tokens;

/// As whom fields are owned (KEP-555, server-side apply).
pub const FIELD_MANAGER: &str = "metalform";
