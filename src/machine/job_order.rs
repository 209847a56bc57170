//! What a worker needs for a job.

use std::sync::Arc;

use super::api::host::HostObject;
use super::api::ssh_public_key::SshPublicKey;
use super::host_job::{HostJob, JobFence};
use super::lifecycle::NodeSettings;

/// A job to begin.
#[derive(Debug, Clone, PartialEq)]
pub struct JobOrder {
    /// Which one.
    pub job: HostJob,
    /// What the host compares.
    pub fence: JobFence,
    /// The Host: how SSH connects, and its failure domain.
    pub host: Arc<HostObject>,
    /// The node that is deployed, of the jobs of a Machine; `None` for an inspection, a stop of the kubelet and a reset.
    pub node: Option<NodeOrder>,
}

/// The node that a host becomes. Its name is that of the Host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeOrder {
    /// `NAMESPACE/NAME` of the Machine.
    pub machine: String,
    /// `--provider-id` of the kubelet.
    pub provider_id: String,
    /// Version of the kubelet, without a leading `v`.
    pub kubelet: String,
    /// Labels, annotations and taints that come from the Machine. The kubelet registers with the taint
    /// [`crate::model::api_contract::NOT_READY_TAINT`] in addition; what it must not set by itself, the pass over the
    /// Machine sets.
    pub settings: NodeSettings,
    /// Keys that may log in as the SSH user of the Host.
    pub ssh_public_keys: Vec<SshPublicKey>,
}
