//! What other nodes know of the API servers, in their proxies, and of the mirrors.

use std::sync::Arc;

use crate::operation::host_access::HostPlan;

/// The proxy of another node.
#[derive(Debug, Clone)]
pub enum ProxyView {
    /// It has every API server.
    Current,
    /// Carrying out the plan makes it so.
    Stale(Arc<HostPlan>),
    /// The node cannot be reached or updated, and why. Its proxy is updated when the node is next deployed.
    Unreachable(String),
}
