//! Which passes a change makes due. Pure.
//!
//! An object that has changed is passed over itself. What else depends on it:
//!
//! | change | passes |
//! | --- | --- |
//! | MachineDeployment | those of its namespace whose conflict with it, or with any, may begin or end |
//! | MachineSet | its MachineDeployment; without an owner those of its namespace, which may adopt it |
//! | Machine | its MachineSet (as above) and the MachineDeployment of that; the Host that it has noted |
//! | Machine that waits for a host and is deleted | the other waiting Machines: a host may be theirs |
//! | Host | the Machine in its claim, those that have noted it, every MachineDeployment (free hosts limit a rollout) |
//! | Host that is free | also every Machine that waits for a host, the oldest first |
//! | Node | the Machine that it is of, the Host of its name, MachineDeployments that declare when a node is unhealthy |
//! | job or probe on a host | the Host of its name, and the Machines that have noted it |

use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use kube::{Resource, ResourceExt};

use super::pass_key::{ObjectKey, PassKey};
use crate::machine::api::conflict::{self, SELECTOR_CONFLICT};
use crate::machine::api::host::HostObject;
use crate::machine::api::host_status::HostStatus;
use crate::machine::api::machine::Machine;
use crate::machine::api::machine_deployment::MachineDeployment;
use crate::machine::api::machine_set::MachineSet;
use crate::model::api_contract::MACHINE_UID;
use crate::model::name::HostName;

/// An object that was created, changed or deleted.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "one exists at a time")]
pub enum ObjectChange {
    /// A MachineDeployment.
    Deployment(MachineDeployment),
    /// A MachineSet.
    Set(MachineSet),
    /// A Machine.
    Machine(Machine),
    /// A Host.
    Host(HostObject),
    /// A Node.
    Node(Node),
    /// What workers do on a host, or whether it answers.
    Work(HostName),
}

/// What the caches show of what a change can concern.
#[derive(Debug, Clone, Default)]
pub struct WakeView {
    /// All MachineDeployments.
    pub deployments: Vec<Arc<MachineDeployment>>,
    /// All MachineSets.
    pub sets: Vec<Arc<MachineSet>>,
    /// All Machines.
    pub machines: Vec<Arc<Machine>>,
    /// Where a Node has changed, the Host of its name; where another object has, none. All, where everything is due.
    pub hosts: Vec<Arc<HostObject>>,
}

impl WakeView {
    /// Every object: what is due when the caches are filled. Machines that are older come first.
    pub fn all(&self) -> Vec<PassKey> {
        let hosts = self.hosts.iter().map(|host| PassKey::Host(host.name_any()));
        let mut machines: Vec<&Arc<Machine>> = self.machines.iter().collect();
        machines.sort_by_key(|machine| age(machine));
        let machines = machines.into_iter().map(|machine| PassKey::Machine(ObjectKey::of(&**machine)));
        let sets = self.sets.iter().map(|set| PassKey::Set(ObjectKey::of(&**set)));
        let deployments = self.deployments.iter().map(|one| PassKey::Deployment(ObjectKey::of(&**one)));
        hosts.chain(machines).chain(sets).chain(deployments).collect()
    }

    /// The passes that a change makes due, in the order in which they are to be made; some may be there twice.
    pub fn woken_by(&self, change: &ObjectChange) -> Vec<PassKey> {
        match change {
            ObjectChange::Deployment(deployment) => {
                let own = PassKey::Deployment(ObjectKey::of(deployment));
                [own].into_iter().chain(self.in_conflict(deployment)).collect()
            }
            ObjectChange::Set(set) => {
                let own = PassKey::Set(ObjectKey::of(set));
                [own].into_iter().chain(self.deployments_of(set)).collect()
            }
            ObjectChange::Machine(machine) => self.by_machine(machine),
            ObjectChange::Host(host) => self.by_host(host),
            ObjectChange::Node(node) => self.by_node(node),
            ObjectChange::Work(host) => {
                let own = PassKey::Host(host.to_string());
                [own].into_iter().chain(self.machines_that(|one| noted(one) == Some(host.as_str()))).collect()
            }
        }
    }

    /// The other MachineDeployments of its namespace that must wait for it, or have waited for one.
    fn in_conflict(&self, changed: &MachineDeployment) -> Vec<PassKey> {
        let is_concerned = |one: &&Arc<MachineDeployment>| {
            one.namespace() == changed.namespace()
                && one.name_any() != changed.name_any()
                && (is_held(one) || !conflict::of_machine_deployment(one, [changed]).is_empty())
        };
        let concerned = self.deployments.iter().filter(is_concerned);
        concerned.map(|one| PassKey::Deployment(ObjectKey::of(&**one))).collect()
    }

    fn by_machine(&self, machine: &Machine) -> Vec<PassKey> {
        let mut woken = vec![PassKey::Machine(ObjectKey::of(machine))];
        woken.extend(noted(machine).map(|host| PassKey::Host(host.to_owned())));
        let owner = controller(machine, "MachineSet");
        let of_namespace = |set: &&Arc<MachineSet>| set.namespace() == machine.namespace();
        for set in self.sets.iter().filter(of_namespace) {
            if owner.is_none() || owner.as_deref() == set.metadata.uid.as_deref() {
                woken.push(PassKey::Set(ObjectKey::of(&**set)));
                woken.extend(self.deployments_of(set));
            }
        }
        if machine.metadata.deletion_timestamp.is_some() && is_waiting(machine) {
            woken.extend(self.machines_that(is_waiting));
        }
        woken
    }

    fn by_host(&self, host: &HostObject) -> Vec<PassKey> {
        let (name, status) = (host.name_any(), host.status.as_ref());
        let mut woken = vec![PassKey::Host(name.clone())];
        if let Some(claim) = status.and_then(|status| status.claim.as_ref()) {
            let machine = &claim.machine;
            let key = ObjectKey { namespace: machine.namespace.clone(), name: machine.name.clone() };
            woken.push(PassKey::Machine(key));
        }
        woken.extend(self.machines_that(|machine| noted(machine) == Some(name.as_str())));
        if status.is_some_and(is_free) {
            woken.extend(self.machines_that(is_waiting));
        }
        woken.extend(self.deployments.iter().map(|one| PassKey::Deployment(ObjectKey::of(&**one))));
        woken
    }

    fn by_node(&self, node: &Node) -> Vec<PassKey> {
        let (name, uid) = (node.name_any(), node.labels().get(MACHINE_UID));
        let is_its = |machine: &Machine| {
            noted(machine) == Some(name.as_str()) || (uid.is_some() && machine.metadata.uid.as_ref() == uid)
        };
        let host = self.hosts.iter().any(|host| host.name_any() == name);
        let host = host.then(|| PassKey::Host(name.clone()));
        let judging = self.machines.iter().filter(|one| is_its(one)).flat_map(|one| self.judging(one));
        self.machines_that(is_its).into_iter().chain(host).chain(judging).collect()
    }

    /// The MachineDeployments of its namespace that declare when a node is unhealthy.
    fn judging(&self, machine: &Machine) -> Vec<PassKey> {
        let judges = |one: &&Arc<MachineDeployment>| {
            one.spec.remediation.is_some() && one.namespace() == machine.namespace()
        };
        let judging = self.deployments.iter().filter(judges);
        judging.map(|one| PassKey::Deployment(ObjectKey::of(&**one))).collect()
    }

    /// Its MachineDeployment; without an owner all of its namespace.
    fn deployments_of(&self, set: &MachineSet) -> Vec<PassKey> {
        let owner = controller(set, "MachineDeployment");
        let is_owner = |one: &&Arc<MachineDeployment>| {
            let same = owner.is_none() || owner.as_deref() == one.metadata.uid.as_deref();
            same && one.namespace() == set.namespace()
        };
        let owners = self.deployments.iter().filter(is_owner);
        owners.map(|one| PassKey::Deployment(ObjectKey::of(&**one))).collect()
    }

    /// The oldest first.
    fn machines_that(&self, accepts: impl Fn(&Machine) -> bool) -> Vec<PassKey> {
        let mut machines: Vec<&Arc<Machine>> = self.machines.iter().filter(|one| accepts(one)).collect();
        machines.sort_by_key(|machine| age(machine));
        machines.into_iter().map(|machine| PassKey::Machine(ObjectKey::of(&**machine))).collect()
    }
}

/// By creation, then by name, as hosts are chosen.
fn age(machine: &Machine) -> (Option<jiff::Timestamp>, String) {
    (machine.creation_timestamp().map(|time| time.0), machine.name_any())
}

/// Whether its status shows a conflict with an earlier one.
fn is_held(deployment: &MachineDeployment) -> bool {
    let conditions = deployment.status.as_ref().map(|status| &*status.conditions).unwrap_or_default();
    conditions.iter().any(|condition| condition.reason == SELECTOR_CONFLICT)
}

/// Whether it has yet to claim a host.
fn is_waiting(machine: &Machine) -> bool {
    machine
        .status
        .as_ref()
        .is_none_or(|status| status.node_ref.is_none() && status.provisioning_since.is_none())
}

fn noted(machine: &Machine) -> Option<&str> {
    machine.status.as_ref()?.host.as_deref()
}

fn is_free(status: &HostStatus) -> bool {
    status.claim.is_none() && status.state.is_free()
}

/// The UID of the object of this kind that controls it.
fn controller<K: Resource>(object: &K, kind: &str) -> Option<String> {
    let owners = object.owner_references().iter();
    let mut own = owners.filter(|owner| owner.controller == Some(true) && owner.kind == kind);
    own.next().map(|owner| owner.uid.clone())
}

#[cfg(test)]
#[path = "wake_tests.rs"]
mod tests;
