//! What a MachineDeployment does next: from its specification, its machine sets and their Machines to the sets that are
//! created, scaled and deleted.
//!
//! # Guarantees
//! - Machines, those that drain or reset included, are never made more than `replicas` + `maxSurge`: hosts are finite.
//! - No scale-down leaves fewer than `replicas` − `maxUnavailable` Machines available, whichever Machines the sets then
//!   delete; Machines that are not available go first. Where fewer are available already, only such Machines go.
//! - While new Machines fail, old ones are kept: at most `maxUnavailable` of them are replaced.
//! - A set whose template has the same hash is used again: a rollback creates nothing.
//! - A plan for what a plan has achieved is empty.
//!
//! # Assumptions
//! - The caller writes a set with the resource version that it observed, and plans again only when its cache shows its
//!   own writes. Its cache of sets may be old otherwise.
//! - What it writes was planned on Machines that it listed from the API server after it had read the sets. A plan on a
//!   cache of Machines shows whether there is anything to do: an old one may hide a Machine that was created and the
//!   deletion that followed.
//! - A set deletes as [`super::machine_set`] does: in that order, from a list that is newer than this plan. It reports a
//!   size as observed when it no longer acts on an earlier one; until then, no size is planned.
//!
//! # Sources
//! The numbers are those of Kubernetes' deployment controller (`ResolveFenceposts`, `NewRSNewReplicas`, `scale`), with
//! two differences: Machines that are being deleted count against `maxSurge`, and scale-downs that are written but not
//! yet carried out are expected to hit available Machines, as in Cluster API's rollout planner.

mod conditions;
mod counts;
mod fenceposts;
mod goal;
mod history;
mod observed_set;
mod plan;
mod progress;
mod proportional;
mod rolling;
mod set_size;

pub use self::conditions::{RolloutCondition, RolloutConditionKind};
pub use self::counts::RolloutCounts;
pub use self::fenceposts::Fenceposts;
pub use self::goal::RolloutGoal;
pub use self::observed_set::ObservedSet;
pub use self::plan::{NewSet, RolloutPlan, SetChange};
pub use self::progress::RolloutProgress;

use jiff::Timestamp;

use self::set_size::SetSize;

/// What is known when a rollout is planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutWorld {
    /// Every machine set that the MachineDeployment controls.
    pub sets: Vec<ObservedSet>,
    /// Hosts in the state Available that match the new template and that no Machine has noted.
    pub free_hosts: u32,
    /// What the last plan recorded; `None` before the first.
    pub progress: Option<RolloutProgress>,
}

/// What the MachineDeployment does next.
pub fn plan(goal: &RolloutGoal, world: &RolloutWorld, now: Timestamp) -> RolloutPlan {
    let mut sets: Vec<&ObservedSet> = world.sets.iter().collect();
    sets.sort_by(|one, other| (one.created, &one.name).cmp(&(other.created, &other.name)));
    // Of several with the template, the oldest: its Machines are the most settled ones.
    let has_template = |set: &&ObservedSet| set.hash == goal.hash;
    let current = sets.iter().position(|set| has_template(set) && !set.deleting);
    // Its name follows from the hash: a set of this name must be gone before it is created again.
    let awaited = current.is_none() && sets.iter().any(has_template);
    // A controller that has not seen a size may still act on the one before.
    let settled = sets.iter().all(|set| set.observed || set.deleting);
    let creates = current.is_none() && !awaited && settled && !goal.paused && !goal.deleting;

    let fenceposts = Fenceposts::of(goal);
    let mut sizes: Vec<SetSize> = sets.iter().map(|set| SetSize::of(set, goal, now)).collect();
    let current = if creates {
        sizes.push(SetSize::of_new());
        Some(sizes.len() - 1)
    } else {
        current
    };
    if goal.deleting {
        sizes.iter_mut().for_each(|size| size.target = 0);
    } else if !settled {
        // The sizes stay.
    } else if goal.paused {
        proportional::scale_paused(goal, fenceposts, &mut sizes, current);
    } else if proportional::is_due(goal, &sets, current) {
        proportional::scale(goal, fenceposts, &mut sizes);
    } else if let Some(current) = current {
        rolling::roll(goal.replicas, fenceposts, &mut sizes, current);
    }
    let decision = plan::Decision { sets: &sets, sizes: &sizes, current, fenceposts, awaited, settled };
    plan::assemble(goal, world, decision, now)
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
