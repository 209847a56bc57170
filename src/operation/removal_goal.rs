//! The goal of a removal.

use std::collections::BTreeSet;
use std::time::Duration;

use super::effect::KeepData;
use super::goal::NodeGoal;

/// The node that shall leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoveGoal {
    /// The node.
    pub node: NodeGoal,
    /// Whether its host is gone: nothing is done on it.
    pub offline: bool,
    /// Whether pods that no controller creates again are deleted with it.
    pub force: bool,
    /// Whether the data of the node stays on its host.
    pub keep_data: KeepData,
    /// Whether its kubelet was stopped for good before: the API may show its Node as Ready for a while yet.
    pub kubelet_stopped: bool,
    /// Whether its host is metalform's alone: without a record of what was there before, all that the states have by name is
    /// removed.
    pub dedicated: bool,
    /// How long its pods may take to leave.
    pub drain_limit: Duration,
    /// Other nodes that the same command removes.
    pub together: BTreeSet<String>,
}

impl AsRef<NodeGoal> for RemoveGoal {
    fn as_ref(&self) -> &NodeGoal {
        &self.node
    }
}
