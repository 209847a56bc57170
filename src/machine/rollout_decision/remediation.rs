//! The Machines of a MachineDeployment that are deleted because their nodes are unhealthy.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;

use super::RolloutObjects;
use crate::machine::api::machine::Machine;
use crate::machine::api::machine_set::MachineSet;
use crate::machine::api::remediation::RemediationError;
use crate::machine::condition::NewCondition;
use crate::machine::health::{self, HealthPlan, HealthRules, HealthTarget, NodeStatusCondition, TargetNode};
use crate::machine::machine_observation::{created, node_name};
use crate::machine::node_observation;
use crate::machine::object_write::{MachineWrite, ObjectWrite};
use crate::machine::ownership::{Ownership, ownership};
use crate::machine::rollout::RolloutGoal;
use crate::model::api_contract::{MACHINE_TEMPLATE_HASH, SKIP_REMEDIATION};

/// The type of the condition of a MachineDeployment that declares a remediation.
pub(super) const REMEDIATION_ALLOWED: &str = "RemediationAllowed";

/// What is replaced; `None` where nothing is declared. The templates of a paused rollout are all present ones: it
/// replaces no Machine of them.
///
/// # Errors
/// When what is declared is invalid.
pub(super) fn plan(
    objects: &RolloutObjects,
    goal: &RolloutGoal,
    own: &[&MachineSet],
    now: Timestamp,
) -> Result<Option<HealthPlan>, RemediationError> {
    let Some(rules) = rules(objects)?.filter(|_| !goal.deleting) else { return Ok(None) };
    let mut targets = Vec::new();
    for set in own {
        let uid = set.uid().unwrap_or_default();
        let is_present =
            set.labels().get(MACHINE_TEMPLATE_HASH).is_some_and(|hash| *hash == goal.hash.as_str());
        let is_current = (is_present || goal.paused) && set.metadata.deletion_timestamp.is_none();
        let is_own = |machine: &Machine| ownership(machine, &uid, &set.spec.selector) == Ownership::Own;
        let machines = objects.machines.iter().filter(|machine| is_own(machine));
        targets.extend(machines.map(|machine| target(objects, machine, is_current)));
    }
    Ok(Some(health::plan(&rules, &targets, now)))
}

fn rules(objects: &RolloutObjects) -> Result<Option<HealthRules>, RemediationError> {
    objects.deployment.spec.remediation.as_ref().map(|declared| declared.rules()).transpose()
}

fn target(objects: &RolloutObjects, machine: &Machine, current: bool) -> HealthTarget {
    HealthTarget {
        name: machine.name_any(),
        created: created(machine),
        node: node(objects, machine),
        current,
        excluded: machine.annotations().contains_key(SKIP_REMEDIATION),
        deleting: machine.metadata.deletion_timestamp.is_some(),
    }
}

/// A Node with another provider ID is not the Machine's.
fn node(objects: &RolloutObjects, machine: &Machine) -> TargetNode {
    let Some(name) = node_name(machine) else { return TargetNode::NotJoined };
    let is_its = |node: &&Arc<Node>| node_observation::provider_id(node) == machine.spec.provider_id.as_ref();
    match objects.nodes.get(name).filter(is_its) {
        Some(node) => TargetNode::Present(node_observation::conditions(node)),
        None => TargetNode::Missing,
    }
}

/// The deletions of a plan, of the Machines in the versions that were observed.
pub(super) fn deletions(objects: &RolloutObjects, plan: &HealthPlan) -> Vec<MachineWrite> {
    let find = |name: &String| objects.machines.iter().find(|machine| machine.name_any() == *name);
    let machines = plan.replace.iter().filter_map(find);
    machines.map(|machine| MachineWrite::Machine(ObjectWrite::delete(&**machine))).collect()
}

/// Contains no number that changes while remediation is allowed.
pub(super) fn condition(plan: &HealthPlan) -> NewCondition {
    let (status, reason, message) = if plan.is_braked() {
        let HealthPlan { total, unhealthy, allowed, .. } = plan;
        let message = format!(
            "remediation is held back: {unhealthy} of {total} machines are unhealthy, at most {allowed} allowed"
        );
        (false, "TooManyUnhealthy", message)
    } else {
        (true, "RemediationAllowed", "machines whose nodes are unhealthy are replaced".to_owned())
    };
    NewCondition { kind: REMEDIATION_ALLOWED, status: Some(status), reason, message }
}

/// Why a Machine is unhealthy, such as `Ready=Unknown since 2026-01-01T00:00:00Z`: the first declared condition that its
/// Node has.
pub(in crate::machine) fn cause(objects: &RolloutObjects, machine: &Machine) -> Option<String> {
    let rules = rules(objects).ok().flatten()?;
    let TargetNode::Present(conditions) = node(objects, machine) else { return None };
    let held = |condition: &&NodeStatusCondition| rules.unhealthy.iter().any(|rule| rule.holds(condition));
    let oldest = conditions.iter().filter(held).min_by_key(|condition| condition.since)?;
    Some(format!("{}={} since {}", oldest.kind, oldest.status, oldest.since))
}
