//! What any Node of a MachineDeployment has at least, for cluster-autoscaler: it plans with it where there is no Node yet
//! (cluster-autoscaler, `clusterapi_nodegroup.go`, `TemplateNodeInfo`).
//!
//! # Guarantees
//! - Of every resource it is the least that a matching Host has: what cluster-autoscaler places on such a Node fits on
//!   whichever Host a Machine gets. A resource that is unknown of one of them is not among them.
//! - cluster-autoscaler takes all of it as available to pods. From facts, what the kubelet reserves is subtracted; what an
//!   operator has entered in `spec.capacity` is taken as it is.
//! - Hosts that are in use count as free ones do: a claim changes nothing.

use std::collections::BTreeMap;

use kube::ResourceExt;

use super::api::host::HostObject;
use super::api::host_facts::HostFacts;
use super::api::machine_deployment::MachineDeployment;
use super::life_observation::template_settings;
use super::pool_offer::ExpectedNode;
use super::resource_amount::ResourceAmount;
use crate::model::api_contract::{ARCHITECTURE, NODE_GROUP_MAX_SIZE};

/// `systemReserved.cpu`, in thousandths (`templates/kubelet/config.yaml.j2`).
const SYSTEM_CPU: u64 = 80;
/// `kubeReserved.cpu` of each processor, in thousandths.
const KUBELET_CPU: u64 = 10;
/// `systemReserved.memory`, in MiB.
const SYSTEM_MEMORY: u64 = 330;
/// `kubeReserved.memory` is one part in so many.
const KUBELET_MEMORY: u64 = 20;
/// `evictionHard.memory.available`, in MiB.
const EVICTION_MEMORY: u64 = 100;
const MEBIBYTE: u64 = 1 << 20;

/// What a resource is called: as an annotation, and in `spec.capacity` of a Host.
const RESOURCES: [(&str, &str); 4] =
    [("cpu", "cpu"), ("memory", "memory"), ("ephemeral-disk", "ephemeral-storage"), (MAX_PODS, "pods")];
const MAX_PODS: &str = "maxPods";

/// A resource of a Host, with the text that an annotation has.
type Amount = (ResourceAmount, String);

/// What a Node of the template has on any of these Hosts, which match it. Empty without Hosts, and for a MachineDeployment
/// that cluster-autoscaler does not scale: one without an upper bound.
pub(super) fn of_template<'a>(
    deployment: &MachineDeployment,
    hosts: impl Iterator<Item = &'a HostObject>,
    max_pods: u32,
) -> ExpectedNode {
    let is_scaled = deployment.annotations().contains_key(NODE_GROUP_MAX_SIZE);
    let hosts: Vec<&HostObject> =
        hosts.filter(|host| is_scaled && host.metadata.deletion_timestamp.is_none()).collect();
    let Some(least) = hosts.iter().map(|host| resources(host, max_pods)).reduce(least) else {
        return ExpectedNode::new();
    };
    let mut node: ExpectedNode = least.into_iter().map(|(name, (_, text))| (name, text)).collect();
    let template = &deployment.spec.template;
    let settings = template_settings(&template.metadata.labels, &template.spec);
    let mut labels = settings.labels;
    if let Some(architecture) = only_architecture(&hosts) {
        labels.insert(ARCHITECTURE.to_owned(), architecture);
    }
    let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let taints: Vec<String> = settings.taints.iter().map(ToString::to_string).collect();
    let texts = [("labels", labels.join(",")), ("taints", taints.join(","))];
    node.extend(texts.into_iter().filter(|(_, text)| !text.is_empty()));
    node
}

fn facts(host: &HostObject) -> Option<&HostFacts> {
    host.status.as_ref()?.facts.as_ref()
}

fn resources(host: &HostObject, max_pods: u32) -> BTreeMap<&'static str, Amount> {
    let entered = |resource: &str| {
        let text = &host.spec.capacity.get(resource)?.0;
        Some((ResourceAmount::parse(text)?, text.clone()))
    };
    let otherwise = |name: &str| match name {
        "cpu" => facts(host).map(usable_cpu),
        "memory" => facts(host).map(usable_memory),
        MAX_PODS => Some(amount(u64::from(max_pods) * 1000)),
        // The disk is not among the facts.
        _ => None,
    };
    let all = RESOURCES.iter().filter_map(|(name, resource)| {
        let (size, text) = entered(resource).or_else(|| otherwise(name))?;
        // cluster-autoscaler parses it as an integer.
        let text = if *name == MAX_PODS { size.floor().to_string() } else { text };
        Some((*name, (size, text)))
    });
    all.collect()
}

/// The smaller of each; of equal ones the text that sorts first, whatever the order of the Hosts.
fn least(
    one: BTreeMap<&'static str, Amount>,
    other: BTreeMap<&'static str, Amount>,
) -> BTreeMap<&'static str, Amount> {
    let both =
        one.into_iter().filter_map(|(name, amount)| Some((name, other.get(name)?.clone().min(amount))));
    both.collect()
}

fn usable_cpu(facts: &HostFacts) -> Amount {
    let cpus = u64::try_from(facts.cpus).unwrap_or_default();
    amount((cpus * (1000 - KUBELET_CPU)).saturating_sub(SYSTEM_CPU))
}

fn usable_memory(facts: &HostFacts) -> Amount {
    let memory = u64::try_from(facts.memory).unwrap_or_default();
    let reserved = (memory / KUBELET_MEMORY / MEBIBYTE + SYSTEM_MEMORY + EVICTION_MEMORY) * MEBIBYTE;
    amount(memory.saturating_sub(reserved).saturating_mul(1000))
}

/// Of so many thousandths.
fn amount(thousandths: u64) -> Amount {
    let text = match thousandths % 1000 {
        0 => (thousandths / 1000).to_string(),
        _ => format!("{thousandths}m"),
    };
    (ResourceAmount::of_thousandths(thousandths), text)
}

/// The architecture that all of them have. Without it, cluster-autoscaler assumes its own.
fn only_architecture(hosts: &[&HostObject]) -> Option<String> {
    let mut all = hosts.iter().map(|host| facts(host).map(|facts| &facts.architecture));
    let first = all.next()??;
    all.all(|one| one == Some(first)).then(|| first.clone())
}

#[cfg(test)]
mod tests;
