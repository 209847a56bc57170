//! What the lives of all Machines and Hosts depend on.

use super::join_deadline::FAILED_JOINS;
use super::kubelet_refusal::{AbsentVersion, KubeletRefusal};
use super::lifecycle::LifecycleLimits;
use crate::model::skew::{self, KubernetesVersion};

/// Settings of the controllers, and the cluster that Machines join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LifeRules {
    /// Of Machines.
    pub limits: LifecycleLimits,
    /// Failed joins in a row after which a Host is quarantined; 0 never does.
    pub failed_joins: u32,
    /// Versions of the API servers; empty: none is known, and none is compared.
    pub servers: Vec<KubernetesVersion>,
    /// Versions of Kubernetes in the bundles, that of the first one first; empty: none is known, and none is compared.
    pub bundles: Vec<String>,
}

impl LifeRules {
    /// Those that hold unless configured otherwise.
    pub const DEFAULT: Self = Self {
        limits: LifecycleLimits::DEFAULT,
        failed_joins: FAILED_JOINS,
        servers: Vec::new(),
        bundles: Vec::new(),
    };

    /// Why a kubelet of this version must not join, or cannot be deployed.
    pub(super) fn refusal(&self, kubelet: &str) -> Option<KubeletRefusal> {
        if let Err(skew) = kubelet.parse().and_then(|version| skew::check(version, &self.servers)) {
            return Some(skew.into());
        }
        let is_absent = !self.bundles.is_empty() && self.bundles.iter().all(|bundle| bundle != kubelet);
        is_absent.then(|| AbsentVersion::new(kubelet, &self.bundles).into())
    }
}
