//! The objects of the API server, with their past: a cache shows some earlier state of each kind.

use std::collections::BTreeMap;

use crate::machine::dice::Dice;
use crate::machine::host_state::HostView;
use crate::machine::lifecycle::{MachineNode, MachineView};
use crate::model::name::HostName;

#[derive(Clone, Default)]
pub(super) struct Objects {
    pub(super) machines: BTreeMap<String, (MachineView, usize)>,
    pub(super) hosts: BTreeMap<HostName, HostView>,
    pub(super) nodes: BTreeMap<HostName, MachineNode>,
}

#[derive(Default)]
pub(super) struct Api {
    pub(super) now: Objects,
    past: Vec<Objects>,
    writes: usize,
}

/// How far each kind is behind.
#[derive(Default, Clone, Copy)]
pub(super) struct Cache {
    machines: usize,
    hosts: usize,
    nodes: usize,
}

impl Api {
    /// A write has been made.
    pub(super) fn written(&mut self) {
        self.past.push(self.now.clone());
    }

    pub(super) fn seen_by(&self, cache: Cache) -> Objects {
        let at = |version: usize| self.past.get(version).unwrap_or(&self.now);
        Objects {
            machines: at(cache.machines).machines.clone(),
            hosts: at(cache.hosts).hosts.clone(),
            nodes: at(cache.nodes).nodes.clone(),
        }
    }

    /// What the API server had, so many writes ago.
    pub(super) fn read(&self, late: usize) -> Objects {
        self.past.len().checked_sub(1 + late).and_then(|at| self.past.get(at)).unwrap_or(&self.now).clone()
    }

    pub(super) fn change_machine(&mut self, uid: &str, change: impl FnOnce(&mut MachineView)) {
        self.writes += 1;
        if let Some((machine, version)) = self.now.machines.get_mut(uid) {
            change(machine);
            *version = self.writes;
            // As the API server: what has no finalizer is gone when it is deleted.
            if machine.deleting_since.is_some() && !machine.finalizers {
                self.now.machines.remove(uid);
            }
        }
        self.written();
    }

    pub(super) fn change_host(&mut self, name: &HostName, change: impl FnOnce(&mut HostView)) {
        self.writes += 1;
        if let Some(host) = self.now.hosts.get_mut(name) {
            change(host);
            host.version = self.writes.to_string();
        }
        self.written();
    }

    pub(super) fn change_nodes(&mut self, change: impl FnOnce(&mut BTreeMap<HostName, MachineNode>)) {
        change(&mut self.now.nodes);
        self.written();
    }
}

impl Cache {
    /// Each kind by itself becomes newer, or not.
    pub(super) fn advance(&mut self, api: &Api, dice: &mut Dice) {
        for version in [&mut self.machines, &mut self.hosts, &mut self.nodes] {
            let behind = api.past.len() - 1 - *version;
            *version += match dice.roll(3) {
                0 => behind,
                1 => dice.roll(behind + 1),
                _ => 0,
            };
        }
    }

    pub(super) fn catch_up(&mut self, api: &Api) {
        let last = api.past.len() - 1;
        *self = Self { machines: last, hosts: last, nodes: last };
    }
}
