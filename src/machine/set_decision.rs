//! What is written for a MachineSet: Machines that are created, adopted and deleted, and its status.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;

use super::api::machine::Machine;
use super::api::machine_set::{DeletePolicy, MachineSet, MachineSetError, MachineSetStatus};
use super::machine_observation::{min_ready, next_available, observe, observe_all};
use super::machine_set::{self, DeleteOrder, MachineSetGoal};
use super::object_name::machine_names;
use super::object_write::{MachineWrite, ObjectWrite};
use super::ownership::{self, Lifecycle, Ownership};
use super::write_plan::WritePlan;
use crate::model::api_contract::{HOST_RELEASED_FINALIZER, NODE_DELETED_FINALIZER};

/// A MachineSet and the Machines of its namespace.
#[derive(Debug, Clone)]
pub struct SetObjects {
    /// The set.
    pub set: Arc<MachineSet>,
    /// Every Machine of the namespace: also those of others, whose names are taken.
    pub machines: Vec<Arc<Machine>>,
}

/// What is written for the set, in order. Adoptions, and the finalizer of the set, come alone: what follows is decided
/// when they are seen.
///
/// The status comes last: where a write before it fails, `observedGeneration` stays that of the size that was acted on.
pub fn decide(objects: &SetObjects, now: Timestamp) -> WritePlan {
    let set = &*objects.set;
    let uid = set.uid().unwrap_or_default();
    let owned = |machine: &Machine| ownership::ownership(machine, &uid, &set.spec.selector);
    let deleting = match ownership::lifecycle(set) {
        Lifecycle::Leaving => return WritePlan::default(),
        Lifecycle::Living { protected: false } => {
            return WritePlan::first(vec![MachineWrite::Set(ownership::protect(set))]);
        }
        Lifecycle::Living { protected: true } => false,
        Lifecycle::Foreground => true,
    };
    let orphans = objects.machines.iter().filter(|machine| owned(machine) == Ownership::Orphan);
    let adopted: Vec<MachineWrite> =
        orphans.filter_map(|orphan| ownership::adopt(&**orphan, set)).map(MachineWrite::Machine).collect();
    if !deleting && !adopted.is_empty() {
        return WritePlan::first(adopted);
    }
    let own: Vec<&Machine> = objects
        .machines
        .iter()
        .map(|machine| &**machine)
        .filter(|machine| owned(machine) == Ownership::Own)
        .collect();
    if deleting && own.is_empty() {
        return WritePlan {
            writes: vec![MachineWrite::Set(ownership::release(set))],
            ..WritePlan::default()
        };
    }
    let goal = MachineSetGoal {
        replicas: set.spec.replicas(),
        delete_order: match set.spec.delete_policy {
            DeletePolicy::Random => DeleteOrder::Random,
            DeletePolicy::Newest => DeleteOrder::Newest,
            DeletePolicy::Oldest => DeleteOrder::Oldest,
        },
        min_ready: min_ready(set.spec.min_ready_seconds),
        deleting,
    };
    let observed = observe_all(&objects.machines, |machine| owned(machine) == Ownership::Own);
    let plan = machine_set::plan(&goal, &observed, now);
    let refused = set.spec.template.spec.provider_spec.decode().err().map(|error| error.to_string());
    let create = if refused.is_none() { plan.create } else { 0 };
    let taken: BTreeSet<String> = objects.machines.iter().map(|machine| machine.name_any()).collect();
    let names = machine_names(&set.name_any(), &uid, &taken, create);
    let created = names.iter().map(|name| ObjectWrite::Create(Box::new(new_machine(set, name))));
    let find = |name: &String| own.iter().find(|machine| machine.name_any() == *name);
    let deleted = plan.delete.iter().filter_map(find).map(|machine| ObjectWrite::delete(*machine));
    let mut writes: Vec<MachineWrite> = created.chain(deleted).map(MachineWrite::Machine).collect();
    let status = status(set, &own, &goal, refused, now);
    writes.extend(ObjectWrite::status(set, set.status.as_ref(), &status).map(MachineWrite::Set));
    WritePlan { writes, wake: next_available(&observed, goal.min_ready, now), again: false }
}

/// A Machine of the template. Its finalizers are there before it claims a host: what is done for it is undone.
fn new_machine(set: &MachineSet, name: &str) -> Machine {
    let template = &set.spec.template;
    let mut machine = Machine::new(name, template.spec.clone());
    // Only a controller sets it, on one Machine.
    machine.spec.provider_id = None;
    machine.metadata.namespace = set.namespace();
    machine.metadata.labels = Some(template.metadata.labels.clone());
    machine.metadata.annotations = Some(template.metadata.annotations.clone());
    let finalizers = [HOST_RELEASED_FINALIZER, NODE_DELETED_FINALIZER];
    machine.metadata.finalizers = Some(finalizers.map(str::to_owned).into());
    machine.metadata.owner_references = ownership::controller_reference(set).map(|owner| vec![owner]);
    machine
}

fn status(
    set: &MachineSet,
    own: &[&Machine],
    goal: &MachineSetGoal,
    refused: Option<String>,
    now: Timestamp,
) -> MachineSetStatus {
    let live = || own.iter().filter(|machine| machine.metadata.deletion_timestamp.is_none());
    let count = |is_counted: &dyn Fn(&Machine) -> bool| {
        i32::try_from(live().filter(|machine| is_counted(machine)).count()).unwrap_or(i32::MAX)
    };
    let labels: &BTreeMap<String, String> = &set.spec.template.metadata.labels;
    let has_labels =
        |machine: &Machine| labels.iter().all(|(key, value)| machine.labels().get(key) == Some(value));
    MachineSetStatus {
        observed_generation: set.metadata.generation.unwrap_or_default(),
        label_selector: set.spec.selector.to_string(),
        replicas: count(&|_| true),
        fully_labeled_replicas: count(&has_labels),
        ready_replicas: count(&|machine| observe(machine).is_ready()),
        available_replicas: count(&|machine| observe(machine).is_available(goal.min_ready, now)),
        error_reason: refused.is_some().then_some(MachineSetError::InvalidConfiguration),
        error_message: refused,
        conditions: set.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
