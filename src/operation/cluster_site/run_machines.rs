//! Which machines the hosts of one command are. Kubelets of hosts that are deployed at the same time have reported nothing
//! yet: without this, clones of one disk would all become nodes. And which of its runs have ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::model::name::HostName;

/// The machine IDs that the hosts of one command have reported over SSH.
#[derive(Debug, Default)]
pub struct RunMachines(Mutex<Reported>);

#[derive(Debug, Default)]
struct Reported {
    of_node: BTreeMap<HostName, String>,
    /// The first node with each.
    first: BTreeMap<String, HostName>,
    ended: BTreeSet<String>,
}

impl RunMachines {
    /// Records what the host of a node has reported. A host without a machine ID is like no other.
    pub(super) fn record(&self, node: &HostName, machine_id: &str) {
        if machine_id.is_empty() {
            return;
        }
        let mut reported = self.reported();
        reported.of_node.insert(node.clone(), machine_id.to_owned());
        reported.first.entry(machine_id.to_owned()).or_insert_with(|| node.clone());
    }

    /// The node whose host has reported the machine ID of this node's before it. So of several nodes all but one are
    /// refused.
    pub(super) fn earlier(&self, node: &HostName) -> Option<HostName> {
        let reported = self.reported();
        let first = reported.first.get(reported.of_node.get(node)?)?;
        (first != node).then(|| first.clone())
    }

    /// Records that the command does nothing more on a node, whatever the outcome.
    pub fn end(&self, node: &HostName) {
        self.reported().ended.insert(node.to_string());
    }

    /// Whether the command does nothing more on the node of this name.
    pub(super) fn has_ended(&self, node: &str) -> bool {
        self.reported().ended.contains(node)
    }

    fn reported(&self) -> MutexGuard<'_, Reported> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_but_the_first_with_a_machine_id_has_an_earlier_one() {
        let machines = RunMachines::default();
        let name = |name: &str| name.parse::<HostName>().unwrap();
        for (node, machine_id) in [("a", "1"), ("b", "1"), ("c", "2"), ("d", ""), ("e", ""), ("a", "1")] {
            machines.record(&name(node), machine_id);
        }
        for (node, expected) in
            [("a", None), ("b", Some("a")), ("c", None), ("d", None), ("e", None), ("f", None)]
        {
            assert_eq!(machines.earlier(&name(node)), expected.map(name), "{node}");
        }
        // It has got another one since.
        machines.record(&name("b"), "3");
        assert_eq!(machines.earlier(&name("b")), None);
        machines.end(&name("a"));
        assert!(machines.has_ended("a") && !machines.has_ended("b"));
    }
}
