//! A MachineDeployment that is in conflict with an earlier one: its status alone is written.

use jiff::Timestamp;

use super::{RolloutDecisionError, RolloutObjects, deployment_writes, observation};
use crate::machine::api::conflict::{MachineDeploymentConflict, SELECTOR_CONFLICT, of_machine_deployment};
use crate::machine::api::machine_set::MachineSet;
use crate::machine::object_write::{MachineWrite, ObjectWrite};
use crate::machine::rollout::{self, RolloutConditionKind, RolloutGoal};
use crate::machine::write_plan::WritePlan;

/// The conflict with the earliest one.
pub(super) fn find(objects: &RolloutObjects) -> Option<MachineDeploymentConflict> {
    let others = objects.deployments.iter().map(|other| &**other);
    of_machine_deployment(&objects.deployment, others).into_iter().next()
}

/// The status while there is this conflict. Machines that exist are counted and stay as they are.
///
/// # Errors
/// When the strategy is invalid.
pub(super) fn hold(
    objects: &RolloutObjects,
    own: &[&MachineSet],
    conflict: &MachineDeploymentConflict,
    now: Timestamp,
) -> Result<WritePlan, RolloutDecisionError> {
    let deployment = &*objects.deployment;
    // As for a pause, no time passes towards the deadline, and the number of free hosts does not matter.
    let goal = RolloutGoal { paused: true, ..observation::goal(deployment, false)? };
    let world = observation::world(deployment, own, &objects.machines, 0);
    let mut plan = rollout::plan(&goal, &world, now);
    for condition in &mut plan.conditions {
        let status = match condition.kind {
            RolloutConditionKind::Available => continue,
            RolloutConditionKind::Progressing => false,
            RolloutConditionKind::RolloutBlocked => true,
        };
        condition.status = Some(status);
        condition.reason = SELECTOR_CONFLICT;
        condition.message = conflict.to_string();
    }
    let status = deployment_writes::status(deployment, &plan, None, now);
    let status = ObjectWrite::status(deployment, deployment.status.as_ref(), &status);
    let writes = status.map(MachineWrite::Deployment).into_iter().collect();
    Ok(WritePlan { writes, wake: plan.wake, again: false })
}
