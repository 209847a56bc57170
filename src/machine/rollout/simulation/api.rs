//! The objects of the API server, with their past: a cache shows some earlier state of each kind.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::machine::observed_machine::{MachineStage, ObservedMachine};
use crate::machine::rollout::ObservedSet;

/// A machine set; its Machines are objects of their own.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SetObject {
    /// Without Machines.
    pub(super) set: ObservedSet,
    /// Of the last write.
    pub(super) version: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct MachineObject {
    pub(super) machine: ObservedMachine,
    pub(super) set: String,
    /// The host that it has noted.
    pub(super) noted: Option<usize>,
    /// It was deleted by a person or for its health, and not by its set.
    pub(super) by_itself: bool,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct HostObject {
    /// The Machine in its claim.
    pub(super) claim: Option<String>,
    pub(super) version: usize,
}

/// Every state that objects of one kind have had.
pub(super) struct Kind<T> {
    past: Vec<T>,
}

impl<T: Clone + PartialEq> Kind<T> {
    pub(super) fn new(first: T) -> Self {
        Self { past: vec![first] }
    }

    pub(super) fn now(&self) -> &T {
        self.past.last().unwrap()
    }

    /// The number of the present state.
    pub(super) fn version(&self) -> usize {
        self.past.len() - 1
    }

    pub(super) fn at(&self, version: usize) -> &T {
        &self.past[version]
    }

    pub(super) fn write(&mut self, change: impl FnOnce(&mut T)) {
        let mut next = self.now().clone();
        change(&mut next);
        self.past.push(next);
    }
}

pub(super) type Sets = BTreeMap<String, SetObject>;
pub(super) type Machines = BTreeMap<String, MachineObject>;

pub(super) struct Api {
    pub(super) sets: Kind<Sets>,
    pub(super) machines: Kind<Machines>,
    pub(super) hosts: Kind<Vec<HostObject>>,
    /// By set: the largest size that its controller may still act on.
    promised: BTreeMap<String, u32>,
}

impl Api {
    pub(super) fn new(hosts: usize) -> Self {
        Self {
            sets: Kind::new(Sets::new()),
            machines: Kind::new(Machines::new()),
            hosts: Kind::new(vec![HostObject::default(); hosts]),
            promised: BTreeMap::new(),
        }
    }

    pub(super) fn live(&self, set: &str) -> u32 {
        let machines = self.machines.now().values();
        count(machines.filter(|object| object.set == set && !object.machine.deleting))
    }

    /// Machines, and replicas that a set may still create. Machines that were deleted by themselves do not count: their
    /// replacement is created at once.
    pub(super) fn occupied(&self) -> u32 {
        let machines = self.machines.now().values();
        let deleting = count(machines.filter(|object| object.machine.deleting && !object.by_itself));
        let sets = self.sets.now().keys();
        sets.map(|name| self.promised(name).max(self.live(name))).sum::<u32>() + deleting
    }

    pub(super) fn promised(&self, set: &str) -> u32 {
        self.promised.get(set).copied().unwrap_or(0)
    }

    pub(super) fn promise(&mut self, set: &str, size: u32) {
        self.promised.insert(set.to_owned(), size);
    }

    pub(super) fn available(&self, min_ready: jiff::SignedDuration, now: Timestamp) -> u32 {
        count(self.machines.now().values().filter(|object| object.machine.is_available(min_ready, now)))
    }

    pub(super) fn change_machine(&mut self, name: &str, change: impl FnOnce(&mut MachineObject)) {
        self.machines.write(|machines| {
            if let Some(object) = machines.get_mut(name) {
                change(object);
            }
        });
    }

    /// The Machine is gone, and its host is clean.
    pub(super) fn remove_machine(&mut self, name: &str) {
        self.hosts.write(|hosts| {
            for host in hosts.iter_mut().filter(|host| host.claim.as_deref() == Some(name)) {
                *host = HostObject { claim: None, version: host.version + 1 };
            }
        });
        self.machines.write(|machines| {
            machines.remove(name);
        });
    }

    pub(super) fn stage(&self, name: &str) -> Option<MachineStage> {
        self.machines.now().get(name).map(|object| object.machine.stage)
    }
}

pub(super) fn count<T>(items: impl Iterator<Item = T>) -> u32 {
    u32::try_from(items.count()).unwrap()
}
