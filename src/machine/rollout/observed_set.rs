//! What a rollout knows of one machine set.

use jiff::Timestamp;

use crate::machine::observed_machine::ObservedMachine;
use crate::machine::revision_hash::RevisionHash;

/// A machine set as it was last observed, with its Machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedSet {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.creationTimestamp`.
    pub created: Timestamp,
    /// Of its template: the label `machine-template-hash`.
    pub hash: RevisionHash,
    /// It has a deletion timestamp.
    pub deleting: bool,
    /// `spec.replicas`.
    pub replicas: u32,
    /// Its controller has acted on `replicas`: `status.observedGeneration` is `metadata.generation`.
    pub observed: bool,
    /// Annotation `machinedeployment.clusters.k8s.io/revision`; 0 without one.
    pub revision: u64,
    /// Annotation `machinedeployment.clusters.k8s.io/revision-history`: the revisions that it was before.
    pub history: Vec<u64>,
    /// Annotation `machinedeployment.clusters.k8s.io/desired-replicas`: the `replicas` of the MachineDeployment when the
    /// set was last scaled.
    pub desired: Option<u32>,
    /// Annotation `machinedeployment.clusters.k8s.io/max-replicas`: `desired` with the surge of that time.
    pub most: Option<u32>,
    /// Its Machines, those that are being deleted included.
    pub machines: Vec<ObservedMachine>,
}
