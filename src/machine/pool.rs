//! All Machines, Hosts and Nodes of a cluster as caches show them, and what a pass over one of them needs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;

use super::api::conflict::{self, HostConflict, OccupiedNode};
use super::api::host::HostObject;
use super::api::machine::Machine;
use super::api::machine_deployment::MachineDeployment;
use super::host_choice::{HostChoice, PoolHost, WaitingMachine, choose, free_hosts, matching};
use super::host_index::{HostIndex, IndexedHost};
use super::host_observation::HostObjects;
use super::life_observation::{MachineObjects, group, requirement, waiting};
use super::life_rules::LifeRules;
use super::occupied_node::occupied;
use super::pool_offer::PoolOffer;
use super::{expected_node, node_observation};

/// One state of the pool. To make one takes the time of looking at each object once, and of one choice for each Machine
/// that waits.
#[derive(Debug, Default)]
pub struct Pool {
    /// By UID.
    machines: BTreeMap<String, Arc<Machine>>,
    /// By name.
    hosts: Vec<Arc<IndexedHost>>,
    /// By name.
    nodes: BTreeMap<String, Arc<Node>>,
    /// Places of Hosts, by the UID of the Machine in their claim.
    claims: BTreeMap<String, usize>,
    waiting: Vec<WaitingMachine>,
    choices: BTreeMap<String, HostChoice>,
    /// What the nodes keep Hosts from having; looked at when a Host without a claim first asks.
    occupied: OnceLock<Vec<OccupiedNode>>,
    /// Nodes that can run pods of others.
    accepting: BTreeSet<String>,
    /// Machines that are not being deleted and have yet to join with a Host of their own.
    joining: BTreeSet<String>,
}

impl Pool {
    /// Of these objects. A Machine whose kubelet is refused gets no choice: it would keep a host from others.
    pub fn new(
        machines: impl IntoIterator<Item = Arc<Machine>>,
        hosts: &HostIndex,
        nodes: impl IntoIterator<Item = Arc<Node>>,
        rules: &LifeRules,
    ) -> Self {
        let machines = machines.into_iter().filter_map(|machine| Some((machine.uid()?, machine)));
        let mut pool = Self {
            machines: machines.collect(),
            hosts: hosts.all(),
            nodes: nodes.into_iter().map(|node| (node.name_any(), node)).collect(),
            ..Self::default()
        };
        for (place, host) in pool.hosts.iter().enumerate() {
            let claim = host.for_choice.as_ref().and_then(|host| host.claim.clone());
            pool.claims.extend(claim.map(|machine| (machine, place)));
        }
        let accepting = pool.nodes.iter().filter(|(_, node)| node_observation::accepts_pods(node));
        pool.accepting = accepting.map(|(name, _)| name.clone()).collect();
        for (uid, machine) in &pool.machines {
            let is_claimed = pool.claims.contains_key(uid);
            let is_living = machine.metadata.deletion_timestamp.is_none();
            let joined = machine.status.as_ref().is_some_and(|status| status.node_ref.is_some());
            if is_claimed && is_living && !joined {
                pool.joining.insert(uid.clone());
            }
            if !is_claimed && let Some(waiting) = waiting(machine) {
                let kubelet = machine.spec.versions.kubelet().unwrap_or_default();
                let may_join = waiting.noted.is_some() || rules.refusal(kubelet).is_none();
                pool.waiting.extend(Some(waiting).filter(|_| may_join));
            }
        }
        if !pool.waiting.is_empty() {
            let claiming = pool.claims.keys().filter_map(|uid| pool.machines.get_key_value(uid));
            let groups: BTreeMap<&str, String> =
                claiming.map(|(uid, machine)| (uid.as_str(), group(machine))).collect();
            let group = |uid: &str| groups.get(uid).map_or("", String::as_str);
            pool.choices = choose(&pool.waiting, &pool.candidates(), group);
        }
        pool
    }

    fn candidates(&self) -> Vec<&PoolHost> {
        self.hosts.iter().filter_map(|host| host.for_choice.as_ref()).collect()
    }

    fn host_named(&self, name: &str) -> Option<&Arc<HostObject>> {
        let place = self.hosts.binary_search_by(|host| host.name().cmp(name)).ok()?;
        Some(&self.hosts.get(place)?.object)
    }

    /// What a pass over a Machine needs, without what its owners define.
    pub fn machine(&self, uid: &str) -> Option<MachineObjects> {
        let machine = self.machines.get(uid)?;
        let noted = machine.status.as_ref().and_then(|status| status.host.as_ref());
        let claimed = self.claims.get(uid).and_then(|place| self.hosts.get(*place));
        let host = claimed.map(|host| host.name()).or(noted.map(String::as_str));
        let node = host.and_then(|host| self.nodes.get(host));
        let other_node = self.accepting.iter().any(|name| Some(name.as_str()) != host);
        let other_machine = self.joining.iter().any(|joining| joining != uid);
        Some(MachineObjects {
            machine: machine.clone(),
            host: host.and_then(|host| self.host_named(host)).cloned(),
            node: node.cloned(),
            choice: self.choices.get(uid).cloned(),
            elsewhere: other_node || other_machine,
            drain_timeout: None,
        })
    }

    /// What a pass over a Host needs.
    pub fn host(&self, name: &str) -> Option<HostObjects> {
        let host = self.host_named(name)?;
        let claim = host.status.as_ref().and_then(|status| status.claim.as_ref());
        let machine = claim.and_then(|claim| self.machines.get(&claim.machine.uid));
        Some(HostObjects {
            host: host.clone(),
            machine: machine.cloned(),
            node: self.nodes.get(name).cloned(),
            conflict: claim.is_none().then(|| self.conflict(host)).flatten(),
        })
    }

    /// That of a Host without a claim: one with a claim has become a node, or is about to.
    fn conflict(&self, host: &HostObject) -> Option<HostConflict> {
        let nodes = self.occupied.get_or_init(|| self.nodes.values().map(|node| occupied(node)).collect());
        let others = self.hosts.iter().map(|other| &*other.object);
        conflict::of_host(host, others, nodes).into_iter().next()
    }

    /// What the hosts that match the template offer, where a Node has at most so many pods; nothing without a valid
    /// provider block.
    pub fn offer(&self, deployment: &MachineDeployment, max_pods: u32) -> PoolOffer {
        let Ok(config) = deployment.spec.template.spec.provider_spec.decode() else {
            return PoolOffer::default();
        };
        let requirement = requirement(&config);
        let candidates = self.candidates();
        let hosts = matching(&requirement, &candidates);
        let hosts = hosts.filter_map(|host| self.host_named(host.name.as_str()).map(Arc::as_ref));
        PoolOffer {
            // Those that are free and noted by no Machine.
            free_hosts: free_hosts(&requirement, &self.waiting, &candidates),
            node: expected_node::of_template(deployment, hosts, max_pods),
        }
    }
}

#[cfg(test)]
mod tests;
