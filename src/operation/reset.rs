//! Resetting a host that is not, or not yet, a node of the cluster: it is made what it was before.

use super::contract::{Operation, PhaseEntry};
use super::deploy::{NodeRunBegun, NodeWorld};
use super::phases;
use super::removal_goal::RemoveGoal;
use crate::model::event::OperationKind;

/// The operation. Its goal is that of a removal: of what is on the host alone.
#[derive(Debug)]
pub struct ResetOperation;

impl Operation for ResetOperation {
    type Goal = RemoveGoal;
    type World = NodeWorld;
    type Begun = NodeRunBegun;

    const KIND: OperationKind = OperationKind::Reset;

    const PHASES: &'static [PhaseEntry<Self>] = &[
        PhaseEntry { phase: &phases::reachable::Reachable, needs: &[] },
        PhaseEntry { phase: &phases::reset_allowed::ResetAllowed, needs: &["Reachable"] },
        PhaseEntry { phase: &phases::node_stopped::NodeStopped, needs: &["Reset allowed"] },
        PhaseEntry { phase: &phases::host_reset::HostReset, needs: &["Node stopped"] },
    ];
}

/// Whether a host may be reset: the first phases of a reset. It changes nothing.
#[derive(Debug)]
pub struct ResetCheckOperation;

impl Operation for ResetCheckOperation {
    type Goal = RemoveGoal;
    type World = NodeWorld;
    type Begun = NodeRunBegun;

    const KIND: OperationKind = OperationKind::Reset;

    const PHASES: &'static [PhaseEntry<Self>] = &[
        PhaseEntry { phase: &phases::reachable::Reachable, needs: &[] },
        PhaseEntry { phase: &phases::reset_allowed::ResetAllowed, needs: &["Reachable"] },
    ];
}
