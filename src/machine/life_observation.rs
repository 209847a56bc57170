//! From a Machine of the API, its Host and its Node to what the planner of its life knows.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

use super::api::drain_timeout::{DrainTimeout, DrainTimeoutError};
use super::api::host::HostObject;
use super::api::machine::{Machine, MachineSpec};
use super::api::provider_id::ProviderId;
use super::api::provider_spec::{ProviderConfig, ProviderSpecError};
use super::api::version::KubeletVersionError;
use super::host_choice::{HostChoice, HostRequirement, WaitingMachine, choose};
use super::host_job::HostWork;
use super::host_observation::{pool_host, view as host_view};
use super::job_order::NodeOrder;
use super::life_rules::LifeRules;
use super::lifecycle::{MachineConditionKind, MachineScene, MachineView, NodeSettings};
use super::machine_observation::created;
use super::node_observation;
use crate::kube_api::eviction::DrainPod;
use crate::model::api_contract::{
    HOST_RELEASED_FINALIZER, MACHINE_TEMPLATE_HASH, NODE_DELETED_FINALIZER, RESERVED_NODE_PREFIXES,
};

/// The type of the condition by which the deletion of pods is announced.
pub(super) const DRAIN_TIMEOUT: &str = "DrainTimeout";

/// A Machine and what belongs to it.
#[derive(Debug, Clone)]
pub struct MachineObjects {
    /// The Machine.
    pub machine: Arc<Machine>,
    /// The Host whose claim is the Machine's; without one, the Host that it has noted.
    pub host: Option<Arc<HostObject>>,
    /// The Node with the name of that Host.
    pub node: Option<Arc<Node>>,
    /// For a Machine without a claimed Host.
    pub choice: Option<HostChoice>,
    /// Another node can run its pods.
    pub elsewhere: bool,
    /// `spec.nodeDrainTimeout` of its MachineDeployment.
    pub drain_timeout: Option<DrainTimeout>,
}

/// A Machine can never become a node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MachineSpecError {
    /// The provider block.
    #[error("{0}")]
    Provider(#[from] ProviderSpecError),
    /// The version of the kubelet.
    #[error("{0}")]
    Version(#[from] KubeletVersionError),
    /// The drain timeout.
    #[error("{0}")]
    DrainTimeout(#[from] DrainTimeoutError),
}

/// All that is known for one step. `pods` are those that must leave the Node; `None` before they were listed.
///
/// # Errors
/// When the specification is invalid, unless the Machine is being deleted: then it has the defaults.
pub fn scene(
    objects: &MachineObjects,
    work: HostWork,
    pods: Option<Vec<DrainPod>>,
    rules: &LifeRules,
) -> Result<MachineScene, MachineSpecError> {
    let mut machine = view(&objects.machine)?;
    machine.drain_timeout = machine.drain_timeout.or(objects.drain_timeout);
    let kubelet = objects.machine.spec.versions.kubelet().unwrap_or_default();
    Ok(MachineScene {
        skew: if machine.deleting_since.is_some() { None } else { rules.refusal(kubelet) },
        machine,
        host: objects.host.as_deref().and_then(host_view),
        choice: objects.choice.clone(),
        node: objects.node.as_deref().map(node_observation::observe),
        work,
        pods,
        elsewhere: objects.elsewhere,
        limits: rules.limits,
    })
}

/// What the planner knows of a Machine.
fn view(machine: &Machine) -> Result<MachineView, MachineSpecError> {
    let deleting_since = machine.metadata.deletion_timestamp.as_ref().map(|time| time.0);
    let (upgrades_packages, drain_timeout) = match checked(machine) {
        Ok(config) => (config.operating_system_spec.dist_upgrade_on_boot, machine.spec.node_drain_timeout()?),
        Err(_) if deleting_since.is_some() => (false, machine.spec.node_drain_timeout().ok().flatten()),
        Err(error) => return Err(error),
    };
    let status = machine.status.clone().unwrap_or_default();
    let condition = |kind: &str| status.conditions.iter().find(|one| one.type_ == kind);
    let since = |kind: &str, is: &str| {
        let holds = |one: &&Condition| one.status == is;
        condition(kind).filter(holds).map(|one| one.last_transition_time.0)
    };
    let finalizers = [HOST_RELEASED_FINALIZER, NODE_DELETED_FINALIZER];
    let has = |one: &str| machine.finalizers().iter().any(|finalizer| finalizer == one);
    Ok(MachineView {
        uid: machine.uid().unwrap_or_default(),
        // One that was removed by hand is not what the other waits for.
        finalizers: match deleting_since {
            Some(_) => finalizers.into_iter().any(has),
            None => finalizers.into_iter().all(has),
        },
        deleting_since,
        owned: machine.owner_references().iter().any(|owner| owner.controller == Some(true)),
        noted: status.host.as_ref().and_then(|host| host.parse().ok()),
        provider_id: machine.spec.provider_id.clone().filter(|id| !id.is_empty()),
        joined: status.node_ref.is_some(),
        unlinked_since: since(MachineConditionKind::NodeLinked.name(), "False"),
        drained: since(MachineConditionKind::Drained.name(), "True").is_some(),
        deletion_announced: since(DRAIN_TIMEOUT, "True"),
        upgrades_packages,
        drain_timeout,
        settings: settings(machine),
    })
}

fn checked(machine: &Machine) -> Result<ProviderConfig, MachineSpecError> {
    machine.spec.versions.kubelet()?;
    machine.spec.node_drain_timeout()?;
    Ok(machine.spec.provider_spec.decode()?)
}

fn settings(machine: &Machine) -> NodeSettings {
    let namespace = machine.namespace().unwrap_or_default();
    let uid = machine.uid().unwrap_or_default();
    template_settings(machine.labels(), &machine.spec).of_machine(&namespace, &machine.name_any(), &uid)
}

/// What a Machine gives its Node: the labels of the Machine, which are those of its template, and its `spec.metadata`,
/// which takes precedence. Labels that a client has given the Machine under a reserved prefix are not copied.
pub(super) fn template_settings(
    machine_labels: &BTreeMap<String, String>,
    spec: &MachineSpec,
) -> NodeSettings {
    let is_reserved = |key: &str| RESERVED_NODE_PREFIXES.iter().any(|prefix| key.starts_with(prefix));
    let is_copied = |key: &str| key != MACHINE_TEMPLATE_HASH && !is_reserved(key);
    let own = machine_labels.iter().filter(|(key, _)| is_copied(key));
    let mut labels: BTreeMap<String, String> = own.map(|(key, value)| (key.clone(), value.clone())).collect();
    labels.extend(spec.metadata.labels.clone());
    NodeSettings { labels, annotations: spec.metadata.annotations.clone(), taints: spec.taints.clone() }
}

/// The node that a Host becomes.
///
/// # Errors
/// When the specification is invalid.
pub fn node_order(machine: &Machine, host: &HostObject) -> Result<Option<NodeOrder>, MachineSpecError> {
    let config = checked(machine)?;
    let Ok(host) = host.name_any().parse() else { return Ok(None) };
    let provider_id = ProviderId { host, machine_uid: machine.uid().unwrap_or_default() };
    Ok(Some(NodeOrder {
        machine: format!("{}/{}", machine.namespace().unwrap_or_default(), machine.name_any()),
        provider_id: provider_id.to_string(),
        kubelet: machine.spec.versions.kubelet()?.to_owned(),
        settings: settings(machine),
        ssh_public_keys: config.ssh_public_keys,
    }))
}

/// What a Machine requires of its host.
pub(super) fn requirement(config: &ProviderConfig) -> HostRequirement {
    HostRequirement {
        selector: config.cloud_provider_spec.host_selector.clone(),
        failure_domain: config.cloud_provider_spec.failure_domain.clone(),
        distribution: Some(config.operating_system.clone()),
        architecture: None,
    }
}

/// A Machine that has yet to claim a host; `None` for one that is being deleted, can never become a node, or has had a
/// host, of which its provider ID is for ever.
pub(super) fn waiting(machine: &Machine) -> Option<WaitingMachine> {
    let joined = machine.status.as_ref().is_some_and(|status| status.node_ref.is_some());
    let had_host = joined || machine.spec.provider_id.as_ref().is_some_and(|id| !id.is_empty());
    if had_host || machine.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let config = checked(machine).ok()?;
    let noted = machine.status.as_ref().and_then(|status| status.host.as_ref());
    Some(WaitingMachine {
        uid: machine.uid()?,
        name: machine.name_any(),
        created: created(machine),
        group: group(machine),
        noted: noted.and_then(|host| host.parse().ok()),
        requirement: requirement(&config),
    })
}

/// The choice for a Machine that has noted a host, as far as it depends on that host. What else is free does not matter:
/// it gets this one or none.
pub fn choice_of_noted(machine: &Machine, noted: Option<&HostObject>) -> Option<HostChoice> {
    let waiting = waiting(machine)?;
    let uid = waiting.uid.clone();
    let host = noted.and_then(pool_host);
    choose(&[waiting], host.as_ref().as_slice(), |_| "").remove(&uid)
}

/// The name of its MachineSet without the hash, which is its MachineDeployment, or a part of its name that other
/// MachineDeployments have only by chance. Machines without a MachineSet are one group.
pub(super) fn group(machine: &Machine) -> String {
    let set = machine.owner_references().iter().find(|owner| owner.controller == Some(true));
    let name = set.map(|set| set.name.as_str()).unwrap_or_default();
    let hash = machine.labels().get(MACHINE_TEMPLATE_HASH);
    let name = hash.and_then(|hash| name.strip_suffix(hash)).unwrap_or(name);
    format!("{}/{}", machine.namespace().unwrap_or_default(), name.trim_end_matches('-'))
}

#[cfg(test)]
mod tests;
