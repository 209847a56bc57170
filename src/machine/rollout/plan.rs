//! The plan of a rollout.

use jiff::Timestamp;

use super::RolloutWorld;
use super::conditions::{RolloutCondition, RolloutState, conditions};
use super::counts::{RolloutCounts, count};
use super::fenceposts::Fenceposts;
use super::goal::RolloutGoal;
use super::history;
use super::observed_set::ObservedSet;
use super::progress::{Deadline, RolloutProgress};
use super::set_size::SetSize;
use crate::machine::observed_machine::{MachineStage, ObservedMachine};
use crate::machine::revision_hash::RevisionHash;

/// What to write. The sets in the order of the fields: created, changed, deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutPlan {
    /// The set to create. Its name follows from the hash: a set of this name that has another owner is an error.
    pub create: Option<NewSet>,
    /// The sets to write, those that grow before those that shrink.
    pub change: Vec<SetChange>,
    /// The names of the sets to delete: old revisions, or all when the MachineDeployment is deleted.
    pub delete: Vec<String>,
    /// Annotation `machinedeployment.clusters.k8s.io/revision` of the MachineDeployment; `None`: it stays.
    pub revision: Option<u64>,
    /// For the status.
    pub counts: RolloutCounts,
    /// For the next plan.
    pub progress: RolloutProgress,
    /// Every kind once. Their transition times are the caller's: the time at which a status changes.
    pub conditions: Vec<RolloutCondition>,
    /// When to plan again if nothing changes; `None`: not before.
    pub wake: Option<Timestamp>,
    /// The MachineDeployment is deleted and no set is left: its finalizer can be removed.
    pub finished: bool,
}

impl RolloutPlan {
    /// Whether it writes no set.
    pub fn is_empty(&self) -> bool {
        self.create.is_none() && self.change.is_empty() && self.delete.is_empty()
    }
}

/// A machine set to create from the template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSet {
    /// Of the template.
    pub hash: RevisionHash,
    /// `spec.replicas`.
    pub replicas: u32,
    /// Annotation `revision`.
    pub revision: u64,
    /// Annotation `desired-replicas`.
    pub desired: u32,
    /// Annotation `max-replicas`.
    pub most: u32,
}

/// A machine set to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetChange {
    /// Its name.
    pub name: String,
    /// `spec.replicas` as observed.
    pub from: u32,
    /// `spec.replicas` to write; may be the same.
    pub to: u32,
    /// Annotation `revision`.
    pub revision: u64,
    /// Annotation `revision-history`.
    pub history: Vec<u64>,
    /// Annotation `desired-replicas`.
    pub desired: Option<u32>,
    /// Annotation `max-replicas`.
    pub most: Option<u32>,
}

/// What was decided about the sets.
pub(super) struct Decision<'a> {
    /// In the order of creation.
    pub(super) sets: &'a [&'a ObservedSet],
    /// Of the same order; one more for a set that is created.
    pub(super) sizes: &'a [SetSize],
    /// The set of the template.
    pub(super) current: Option<usize>,
    pub(super) fenceposts: Fenceposts,
    /// A set of the template is being deleted, and is created again when it is gone.
    pub(super) awaited: bool,
    /// Every set has acted on its size.
    pub(super) settled: bool,
}

pub(super) fn assemble(
    goal: &RolloutGoal,
    world: &RolloutWorld,
    decision: Decision<'_>,
    now: Timestamp,
) -> RolloutPlan {
    let Decision { sets, sizes, current, fenceposts, awaited, settled } = decision;
    let (revision, revision_history) = history::revision(sets, current);
    let most = fenceposts.most(goal.replicas);
    let created = sizes.get(sets.len());
    let create = created.map(|size| NewSet {
        hash: goal.hash.clone(),
        replicas: size.target,
        revision,
        desired: goal.replicas,
        most,
    });
    let mut change: Vec<SetChange> = sets
        .iter()
        .zip(sizes)
        .enumerate()
        .filter(|(_, (set, _))| !set.deleting)
        .map(|(index, (set, size))| {
            let is_current = current == Some(index) && !goal.deleting;
            let records = !goal.deleting && settled && (size.target > 0 || size.target != set.replicas);
            SetChange {
                name: set.name.clone(),
                from: set.replicas,
                to: size.target,
                revision: if is_current { revision } else { set.revision },
                history: if is_current { revision_history.clone() } else { set.history.clone() },
                desired: if records { Some(goal.replicas) } else { set.desired },
                most: if records { Some(most) } else { set.most },
            }
        })
        .zip(sets.iter().filter(|set| !set.deleting))
        .filter(|(change, set)| {
            (change.to, change.revision, change.desired, change.most)
                != (set.replicas, set.revision, set.desired, set.most)
        })
        .map(|(change, _)| change)
        .collect();
    // What was free stays free if the caller is interrupted in between.
    change.sort_by_key(|change| change.to < change.from);

    let counts = RolloutCounts::of(goal, sets, current, now);
    let is_settled = settled && create.is_none() && sizes.iter().all(|size| size.target == size.written);
    let is_complete = is_settled
        && current.is_some_and(|index| sets[index].replicas == goal.replicas)
        && [counts.replicas, counts.updated, counts.available].iter().all(|count| *count == goal.replicas)
        && counts.deleting == 0;
    let progress = RolloutProgress {
        hash: goal.hash.clone(),
        replicas: goal.replicas,
        updated: counts.updated,
        old: (counts.replicas - counts.updated).saturating_add(old_deleting(sets, current)),
        ready: counts.ready,
        available: counts.available,
        waiting: counts.waiting,
        resting: is_complete || goal.paused || goal.deleting,
        since: now,
    };
    let progress = progress.after(world.progress.as_ref());
    let state = RolloutState {
        is_complete,
        awaited,
        needed: if goal.paused || goal.deleting { 0 } else { needed(sets, sizes, current, goal, now) },
        free: world.free_hosts,
        old: progress.old,
        fenceposts,
        counts,
        deadline: progress.deadline(goal, now),
    };
    let deleted = if goal.deleting {
        let empty = |set: &&&ObservedSet| !set.deleting && set.machines.is_empty() && set.replicas == 0;
        sets.iter().filter(empty).map(|set| set.name.clone()).collect()
    } else if is_complete {
        history::obsolete(sets, current, goal.revision_history_limit)
    } else {
        Vec::new()
    };
    RolloutPlan {
        create,
        change,
        delete: deleted,
        revision: (current.is_some() && !goal.deleting).then_some(revision),
        counts,
        conditions: conditions(goal, &state),
        wake: wake(goal, sets, state.deadline, now),
        finished: goal.deleting && sets.is_empty(),
        progress,
    }
}

fn old_deleting(sets: &[&ObservedSet], current: Option<usize>) -> u32 {
    let others = sets.iter().enumerate().filter(|(index, _)| Some(*index) != current);
    count(others.flat_map(|(_, set)| &set.machines).filter(|machine| machine.deleting))
}

/// The hosts that are missing for the next step, if nothing else brings the rollout further: no host is on its way back
/// to the pool, and no new Machine is on its way to serve.
fn needed(
    sets: &[&ObservedSet],
    sizes: &[SetSize],
    current: Option<usize>,
    goal: &RolloutGoal,
    now: Timestamp,
) -> u32 {
    let Some(current) = current else { return 0 };
    let returns = sizes.iter().any(|size| size.deleting > 0 || size.target < size.live);
    let own = || sets.get(current).into_iter().flat_map(|set| &set.machines);
    let waits = |machine: &&ObservedMachine| machine.stage == MachineStage::WaitingForHost;
    let advances = own()
        .any(|machine| !waits(&machine) && !machine.deleting && !machine.is_available(goal.min_ready, now));
    if returns || advances {
        return 0;
    }
    let waiting = count(own().filter(waits));
    waiting.saturating_add(sizes[current].target.saturating_sub(sizes[current].live))
}

fn wake(goal: &RolloutGoal, sets: &[&ObservedSet], deadline: Deadline, now: Timestamp) -> Option<Timestamp> {
    let machines = sets.iter().flat_map(|set| &set.machines);
    let available = machines.filter_map(|machine| machine.available_at(goal.min_ready, now));
    let deadline = match deadline {
        Deadline::At(time) => Some(time),
        Deadline::Never | Deadline::Exceeded => None,
    };
    available.chain(deadline).min()
}
