//! Removing a node: a machine leaves the cluster, which goes on without it.

use super::contract::{Operation, PhaseEntry};
use super::deploy::{NodeRunBegun, NodeWorld};
use super::phases;
use super::removal_goal::RemoveGoal;
use crate::model::event::OperationKind;

/// The operation.
#[derive(Debug)]
pub struct RemoveOperation;

impl Operation for RemoveOperation {
    type Goal = RemoveGoal;
    type World = NodeWorld;
    type Begun = NodeRunBegun;

    const KIND: OperationKind = OperationKind::Removal;

    const WITHOUT_HOST: Option<&'static str> = Some("--offline");

    // An offline removal leaves out whatever is done on the host: each phase names all that comes before it.
    const PHASES: &'static [PhaseEntry<Self>] = &[
        PhaseEntry { phase: &phases::host_reachable::HostReachable, needs: &[] },
        PhaseEntry { phase: &phases::removal_allowed::RemovalAllowed, needs: &["Reachable"] },
        PhaseEntry { phase: &phases::drained::Drained, needs: &["Removal allowed"] },
        PhaseEntry {
            phase: &phases::apiserver_withdrawn::ApiServerWithdrawn,
            needs: &["Removal allowed", "Drained"],
        },
        PhaseEntry {
            phase: &phases::mirror_withdrawn::MirrorWithdrawn,
            needs: &["Removal allowed", "Drained"],
        },
        PhaseEntry {
            phase: &phases::control_plane_stopped::ControlPlaneStopped,
            needs: &["Removal allowed", "Drained", "API server withdrawn"],
        },
        PhaseEntry {
            phase: &phases::member_removed::MemberRemoved,
            needs: &["Removal allowed", "Drained", "API server withdrawn", "Control plane stopped"],
        },
        PhaseEntry {
            phase: &phases::node_stopped::NodeStopped,
            needs: &["Removal allowed", "Drained", "Control plane stopped", "etcd member removed"],
        },
        PhaseEntry {
            phase: &phases::host_reset::HostReset,
            needs: &["Removal allowed", "Drained", "Mirror withdrawn", "etcd member removed", "Node stopped"],
        },
        PhaseEntry {
            phase: &phases::node_deleted::NodeDeleted,
            needs: &[
                "Removal allowed",
                "Drained",
                "API server withdrawn",
                "Mirror withdrawn",
                "etcd member removed",
                "Node stopped",
                "Host reset",
            ],
        },
    ];
}
