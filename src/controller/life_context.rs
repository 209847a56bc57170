//! What every pass over a Machine or a Host uses.

use kube::Client;

use super::host_workers::HostWorkers;
use crate::machine::life_rules::LifeRules;

/// The cluster, the workers of this process, and what the lives depend on.
#[derive(Clone, Copy)]
pub struct LifeContext<'a> {
    /// It must not retry by itself: a disruption budget is answered with 429
    /// ([`crate::kube_api::client::connect_without_retry`]).
    pub client: &'a Client,
    /// Of this process.
    pub workers: &'a dyn HostWorkers,
    /// As of now.
    pub rules: &'a LifeRules,
}
