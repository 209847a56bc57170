//! A Machine and what belongs to it, as observed.

use jiff::{SignedDuration, Timestamp};

use super::machine_node::MachineNode;
use super::node_settings::NodeSettings;
use crate::kube_api::eviction::DrainPod;
use crate::machine::api::drain_timeout::DrainTimeout;
use crate::machine::api::provider_id::ProviderId;
use crate::machine::drain::DRAIN_TIMEOUT;
use crate::machine::host_choice::HostChoice;
use crate::machine::host_job::HostWork;
use crate::machine::host_state::HostView;
use crate::machine::join_deadline::JOIN_TIMEOUT;
use crate::machine::kubelet_refusal::KubeletRefusal;
use crate::model::name::HostName;

/// How long the versions of the API servers count as known: the skew of a Machine may be another one after it.
pub const VERSIONS_KNOWN: SignedDuration = SignedDuration::from_mins(5);

/// A Machine, as far as its life depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineView {
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.deletionTimestamp`.
    pub deleting_since: Option<Timestamp>,
    /// It has both finalizers.
    pub finalizers: bool,
    /// A MachineSet owns it: what cannot become a node is deleted, and replaced.
    pub owned: bool,
    /// `status.host`.
    pub noted: Option<HostName>,
    /// `spec.providerID`.
    pub provider_id: Option<String>,
    /// `status.nodeRef` is set: its Node has joined, once.
    pub joined: bool,
    /// Since when its condition NodeLinked is False.
    pub unlinked_since: Option<Timestamp>,
    /// Its condition Drained is True.
    pub drained: bool,
    /// When the deletion of its pods was announced.
    pub deletion_announced: Option<Timestamp>,
    /// `distUpgradeOnBoot`.
    pub upgrades_packages: bool,
    /// `spec.nodeDrainTimeout`, or else that of its MachineDeployment.
    pub drain_timeout: Option<DrainTimeout>,
    /// Of its Node.
    pub settings: NodeSettings,
}

impl MachineView {
    /// The host of its provider ID, which is set once: it becomes a node on no other.
    pub(super) fn bound_to(&self) -> Option<HostName> {
        let id: ProviderId = self.provider_id.as_deref()?.parse().ok()?;
        Some(id.host)
    }
}

/// The limits of a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LifecycleLimits {
    /// From the claim to the Node, without the time in which jobs wait for their turn; `None` is no limit.
    pub join_timeout: Option<SignedDuration>,
    /// Of Machines that have none of their own.
    pub drain_timeout: DrainTimeout,
    /// How long a Node may be missing before its kubelet is restarted.
    pub node_grace: SignedDuration,
    /// How long a Node may be missing before its Machine is lost.
    pub node_timeout: SignedDuration,
}

impl LifecycleLimits {
    /// Those that hold unless configured otherwise.
    pub const DEFAULT: Self = Self {
        join_timeout: Some(JOIN_TIMEOUT),
        drain_timeout: DRAIN_TIMEOUT,
        node_grace: SignedDuration::from_mins(1),
        node_timeout: SignedDuration::from_mins(10),
    };
}

/// All that is known for one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineScene {
    /// The Machine.
    pub machine: MachineView,
    /// The Host whose claim is the Machine's; without one, the Host that it has noted.
    pub host: Option<HostView>,
    /// The choice for a Machine without a claimed Host ([`crate::machine::host_choice::choose`]).
    pub choice: Option<HostChoice>,
    /// The Node with the name of `host`.
    pub node: Option<MachineNode>,
    /// What workers of this process do on `host`.
    pub work: HostWork,
    /// The pods that must leave the Node; `None` before they were listed.
    pub pods: Option<Vec<DrainPod>>,
    /// Another node can run its pods ([`crate::machine::drain::DrainScene::elsewhere`]).
    pub elsewhere: bool,
    /// Why its kubelet must not join the API servers of now, or cannot be deployed from the bundles of now.
    pub skew: Option<KubeletRefusal>,
    /// The limits.
    pub limits: LifecycleLimits,
}

impl MachineScene {
    /// The provider ID of its Node, on a host.
    pub(super) fn provider_id(&self, host: &HostName) -> String {
        ProviderId { host: host.clone(), machine_uid: self.machine.uid.clone() }.to_string()
    }

    /// The Node of the Machine, if its provider ID is the Machine's.
    pub fn own_node(&self) -> Option<&MachineNode> {
        let id = self.provider_id(&self.host.as_ref()?.name);
        self.node.as_ref().filter(|node| node.provider_id.as_ref() == Some(&id))
    }
}
