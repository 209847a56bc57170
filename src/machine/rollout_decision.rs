//! What is written for a MachineDeployment: its MachineSets, its annotations and its status.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;

use super::api::machine::Machine;
use super::api::machine_deployment::MachineDeployment;
use super::api::machine_set::MachineSet;
use super::api::remediation::RemediationError;
use super::api::rolling_update::RollingUpdateError;
use super::machine_observation::node_name;
use super::object_write::{MachineWrite, ObjectWrite};
use super::ownership::{self, Lifecycle, Ownership};
use super::pool_offer::PoolOffer;
use super::rollout::{self, RolloutGoal};
use super::write_plan::WritePlan;

mod deployment_writes;
mod observation;
mod remediation;
mod selector_conflict;
mod set_writes;

pub(super) use self::remediation::cause as unhealthy_cause;

/// A MachineDeployment, and the others, the MachineSets and the Machines of its namespace.
#[derive(Debug, Clone)]
pub struct RolloutObjects {
    /// The MachineDeployment.
    pub deployment: Arc<MachineDeployment>,
    /// Every MachineDeployment of the namespace, itself included: an earlier one may select its Machines.
    pub deployments: Vec<Arc<MachineDeployment>>,
    /// Every MachineSet of the namespace: also those of others, whose names are taken.
    pub sets: Vec<Arc<MachineSet>>,
    /// The Machines of the namespace, listed after the sets.
    pub machines: Vec<Arc<Machine>>,
    /// The Nodes of these Machines by name, where the MachineDeployment declares a remediation.
    pub nodes: BTreeMap<String, Arc<Node>>,
}

/// Why nothing can be decided for a MachineDeployment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RolloutDecisionError {
    /// Its strategy is invalid.
    #[error("strategy.rollingUpdate: {0}")]
    Strategy(#[from] RollingUpdateError),
    /// What it declares of unhealthy nodes is invalid.
    #[error("remediation: {0}")]
    Remediation(#[from] RemediationError),
    /// A MachineSet has the name of the one to create, and is not one of its own.
    #[error("MachineSet {name} exists and has another owner or another template")]
    NameTaken {
        /// Of the MachineSet.
        name: String,
    },
}

/// What is written for the MachineDeployment, in order. Adoptions, and its finalizer, come alone: what follows is
/// decided when they are seen.
///
/// While it is in conflict with an earlier one, only the status is written after the finalizer; nothing is adopted.
///
/// The status comes last, and after a change of the annotations in the next pass, as it is of a version.
///
/// # Errors
/// When the MachineDeployment is invalid, or cannot create its MachineSet. Nothing is to be written then.
pub fn decide(
    objects: &RolloutObjects,
    offer: &PoolOffer,
    now: Timestamp,
) -> Result<WritePlan, RolloutDecisionError> {
    let deployment = &*objects.deployment;
    let uid = deployment.uid().unwrap_or_default();
    let owned = |set: &MachineSet| ownership::ownership(set, &uid, &deployment.spec.selector);
    let deleting = match ownership::lifecycle(deployment) {
        Lifecycle::Leaving => return Ok(WritePlan::default()),
        Lifecycle::Living { protected: false } => {
            return Ok(WritePlan::first(vec![MachineWrite::Deployment(ownership::protect(deployment))]));
        }
        Lifecycle::Living { protected: true } => false,
        Lifecycle::Foreground => true,
    };
    let own: Vec<&MachineSet> =
        objects.sets.iter().map(|set| &**set).filter(|set| owned(set) == Ownership::Own).collect();
    if !deleting && let Some(conflict) = selector_conflict::find(objects) {
        return selector_conflict::hold(objects, &own, &conflict, now);
    }
    let orphans = objects.sets.iter().filter(|set| owned(set) == Ownership::Orphan);
    let adopted: Vec<MachineWrite> =
        orphans.filter_map(|orphan| ownership::adopt(&**orphan, deployment)).map(MachineWrite::Set).collect();
    if !deleting && !adopted.is_empty() {
        return Ok(WritePlan::first(adopted));
    }
    let goal = observation::goal(deployment, deleting)?;
    let world = observation::world(deployment, &own, &objects.machines, offer.free_hosts);
    let plan = rollout::plan(&goal, &world, now);
    let health = remediation::plan(objects, &goal, &own, now)?;

    if plan.finished {
        let released = MachineWrite::Deployment(ownership::release(deployment));
        return Ok(WritePlan { writes: vec![released], ..WritePlan::default() });
    }
    let mut writes: Vec<MachineWrite> = Vec::new();
    if let Some(new) = &plan.create {
        let set = set_writes::new_set(deployment, new);
        let name = set.name_any();
        if objects.sets.iter().any(|other| other.name_any() == name) {
            return Err(RolloutDecisionError::NameTaken { name });
        }
        writes.push(MachineWrite::Set(ObjectWrite::Create(Box::new(set))));
    }
    writes.extend(changes(deployment, &own, &goal, &plan).into_iter().map(MachineWrite::Set));
    let find = |name: &String| own.iter().find(|set| set.name_any() == *name);
    let deleted = plan.delete.iter().filter_map(find).map(|set| ObjectWrite::delete(*set));
    writes.extend(deleted.map(MachineWrite::Set));
    writes.extend(health.iter().flat_map(|health| remediation::deletions(objects, health)));
    let expected = (!deleting).then_some(&offer.node);
    if let Some(annotated) = deployment_writes::annotations(deployment, plan.revision, expected) {
        writes.push(MachineWrite::Deployment(annotated));
        return Ok(WritePlan::first(writes));
    }
    let health_condition = health.as_ref().map(remediation::condition);
    let status = deployment_writes::status(deployment, &plan, health_condition, now);
    let status = ObjectWrite::status(deployment, deployment.status.as_ref(), &status);
    writes.extend(status.map(MachineWrite::Deployment));
    let wake = plan.wake.into_iter().chain(health.and_then(|health| health.wake)).min();
    Ok(WritePlan { writes, wake, again: false })
}

/// The names of the Nodes of those Machines that a decision on these objects deletes because they are unhealthy: caches
/// may show what a Node was.
pub fn doubted_nodes(objects: &RolloutObjects, now: Timestamp) -> BTreeSet<String> {
    let deployment = &*objects.deployment;
    let uid = deployment.uid().unwrap_or_default();
    let is_own =
        |set: &&MachineSet| ownership::ownership(*set, &uid, &deployment.spec.selector) == Ownership::Own;
    let own: Vec<&MachineSet> = objects.sets.iter().map(|set| &**set).filter(is_own).collect();
    let deleting = deployment.metadata.deletion_timestamp.is_some();
    let Ok(goal) = observation::goal(deployment, deleting) else { return BTreeSet::new() };
    let plan = remediation::plan(objects, &goal, &own, now).ok().flatten().unwrap_or_default();
    let is_replaced = |machine: &&Arc<Machine>| plan.replace.contains(&machine.name_any());
    let replaced = objects.machines.iter().filter(is_replaced);
    replaced.filter_map(|machine| node_name(machine).cloned()).collect()
}

/// The sets that the plan changes, in its order, then those that differ from the MachineDeployment otherwise.
fn changes(
    deployment: &MachineDeployment,
    own: &[&MachineSet],
    goal: &RolloutGoal,
    plan: &rollout::RolloutPlan,
) -> Vec<ObjectWrite<MachineSet>> {
    let place = |set: &MachineSet| {
        let name = set.name_any();
        plan.change.iter().position(|change| change.name == name).unwrap_or(plan.change.len())
    };
    let mut sets: Vec<&MachineSet> =
        own.iter().copied().filter(|set| set.metadata.deletion_timestamp.is_none()).collect();
    sets.sort_by_key(|set| place(set));
    let write = |set: &MachineSet| set_writes::change(deployment, goal, set, plan.change.get(place(set)));
    sets.into_iter().filter_map(write).collect()
}

#[cfg(test)]
mod tests;
