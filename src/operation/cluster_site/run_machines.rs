//! Which machines the hosts of one command are. Kubelets of hosts that are deployed at the same time have reported nothing
//! yet: without this, clones of one disk would all become nodes. And how far its runs are.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::model::name::HostName;
use crate::operation::observed::node::RunState;

/// The machine IDs that the hosts of one command have reported over SSH.
#[derive(Debug, Default)]
pub struct RunMachines(Mutex<Reported>);

#[derive(Debug, Default)]
struct Reported {
    of_node: BTreeMap<HostName, String>,
    /// The first node with each.
    first: BTreeMap<String, HostName>,
    runs: BTreeMap<String, RunState>,
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

    /// Records how far the command is with a node.
    pub fn record_run(&self, node: &HostName, run: RunState) {
        self.reported().runs.insert(node.to_string(), run);
    }

    /// How far the command is with the node of this name.
    pub(super) fn run(&self, node: &str) -> RunState {
        self.reported().runs.get(node).copied().unwrap_or_default()
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
        machines.record_run(&name("a"), RunState::Ended);
        assert_eq!([machines.run("a"), machines.run("b")], [RunState::Ended, RunState::Runs]);
    }
}
