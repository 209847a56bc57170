//! A client of the Kubernetes API: nodes and their Events, pods and their eviction, join tokens, Secrets, manifests, records
//! of operations and Leases.
//!
//! Errors ([`client::ApiError`]) contain the request that failed.

pub mod client;
pub mod definition_owner;
pub mod eviction;
pub mod http_probe;
pub mod lease;
pub mod manifests;
pub mod node_addresses;
pub mod node_events;
mod node_manifest;
pub mod node_policy;
pub mod nodes;
pub mod operation_records;
pub mod pod_name;
pub mod pod_removal;
pub mod pods;
pub mod secrets;
pub mod service_endpoints;
pub mod token_access;
pub mod tokens;

/// Owner of fields (KEP-555, server-side apply).
pub const FIELD_MANAGER: &str = "metalform";
