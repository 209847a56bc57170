//! What the Hosts of the pool offer the template of a MachineDeployment.

use std::collections::BTreeMap;

/// Annotations for cluster-autoscaler by their names without
/// [`crate::model::api_contract::EXPECTED_CAPACITY_PREFIX`]: `cpu`, `labels`.
pub type ExpectedNode = BTreeMap<&'static str, String>;

/// What the Hosts offer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PoolOffer {
    /// [`crate::machine::rollout::RolloutWorld::free_hosts`].
    pub free_hosts: u32,
    /// What any Node of the template has at least; empty if that is unknown, or nothing reads it.
    pub node: ExpectedNode,
}
