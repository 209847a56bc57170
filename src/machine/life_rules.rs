//! What the lives of all Machines and Hosts depend on.

use super::join_deadline::FAILED_JOINS;
use super::lifecycle::LifecycleLimits;
use crate::model::skew::{self, KubernetesVersion, SkewError};

/// Settings of the controllers, and the cluster that Machines join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LifeRules {
    /// Of Machines.
    pub limits: LifecycleLimits,
    /// Failed joins in a row after which a Host is quarantined; 0 never does.
    pub failed_joins: u32,
    /// Versions of the API servers; empty: none is known, and none is compared.
    pub servers: Vec<KubernetesVersion>,
}

impl LifeRules {
    /// Those that hold unless configured otherwise.
    pub const DEFAULT: Self =
        Self { limits: LifecycleLimits::DEFAULT, failed_joins: FAILED_JOINS, servers: Vec::new() };

    /// Why a kubelet of this version must not join.
    pub(super) fn skew(&self, kubelet: &str) -> Option<SkewError> {
        kubelet.parse().and_then(|version| skew::check(version, &self.servers)).err()
    }
}
