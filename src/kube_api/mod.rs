//! A client of the Kubernetes API: nodes, pods, join tokens, manifests and one Lease.
//!
//! Errors ([`client::ApiError`]) contain the request that failed.

pub mod client;
pub mod eviction;
pub mod http_probe;
pub mod lease;
pub mod manifests;
pub mod node_addresses;
mod node_manifest;
pub mod node_policy;
pub mod nodes;
pub mod pods;
pub mod tokens;

/// Owner of fields (KEP-555, server-side apply).
pub const FIELD_MANAGER: &str = "metalform";
