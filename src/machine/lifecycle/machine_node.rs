//! A Node as it was observed.

use std::collections::BTreeMap;

use crate::model::node::Taint;

/// The Node with the name of a Machine's host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineNode {
    /// `spec.providerID`.
    pub provider_id: Option<String>,
    /// `metadata.labels`.
    pub labels: BTreeMap<String, String>,
    /// `metadata.annotations`.
    pub annotations: BTreeMap<String, String>,
    /// `spec.taints`.
    pub taints: Vec<Taint>,
    /// `spec.unschedulable`.
    pub unschedulable: bool,
    /// The condition Ready is True.
    pub ready: bool,
    /// The message of the condition Ready.
    pub message: String,
    /// The pods of the pod network run on it.
    pub pod_network: bool,
}

impl MachineNode {
    /// Whether it may accept pods.
    pub(super) fn admitted(&self) -> bool {
        self.ready && self.pod_network
    }
}
