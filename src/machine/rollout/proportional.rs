//! Sizes when `replicas` changes in the middle of a rollout: each set gets its share, as in Kubernetes' `scale`.

use std::cmp::Reverse;

use super::fenceposts::Fenceposts;
use super::goal::RolloutGoal;
use super::observed_set::ObservedSet;
use super::set_size::{SetSize, sum};

/// Whether `replicas` has changed since sets of both templates were last scaled. Before the first new Machine there is
/// nothing to divide: growing an old set would provision hosts for a template that is about to go.
pub(super) fn is_due(goal: &RolloutGoal, sets: &[&ObservedSet], current: Option<usize>) -> bool {
    let is_active = |index: usize| sets.get(index).is_some_and(|set| set.replicas > 0 && !set.deleting);
    let active = (0..sets.len()).filter(|index| is_active(*index));
    let is_old = |index: &usize| Some(*index) != current;
    let changed =
        active.clone().any(|index| sets[index].desired.is_some_and(|desired| desired != goal.replicas));
    changed && current.is_some_and(is_active) && active.clone().any(|index| is_old(&index))
}

/// While the MachineDeployment is paused: only as many Machines more or less as `replicas` requires. Old sets go once the
/// current one has all replicas available, as in Kubernetes.
pub(super) fn scale_paused(
    goal: &RolloutGoal,
    fenceposts: Fenceposts,
    sizes: &mut [SetSize],
    current: Option<usize>,
) {
    let saturated = |size: &SetSize| size.written == goal.replicas && size.left_available() == goal.replicas;
    if let Some(current) = current.filter(|index| saturated(&sizes[*index])) {
        let others = sizes.iter_mut().enumerate().filter(|(index, _)| *index != current);
        others.for_each(|(_, size)| size.target = 0);
        return;
    }
    let active = sizes.iter().filter(|size| size.written > 0).count();
    if active == 0 {
        // The current set, or the newest one.
        let latest = current.or_else(|| sizes.iter().rposition(|size| !size.is_going));
        if let Some(latest) = latest {
            let room = fenceposts.most(goal.replicas).saturating_sub(sum(sizes, SetSize::occupied));
            sizes[latest].target = room.min(goal.replicas);
        }
        return;
    }
    let total = sum(sizes, |size| size.written);
    // One set has no surge to keep.
    let most = if active == 1 { goal.replicas } else { fenceposts.most(goal.replicas) };
    if total > most {
        reduce(goal, fenceposts, sizes, total - most);
    } else if total < goal.replicas {
        grow(goal, fenceposts, sizes, goal.replicas - total);
    }
}

/// Divides what is missing up to `replicas` + `maxSurge`, or what is above it.
pub(super) fn scale(goal: &RolloutGoal, fenceposts: Fenceposts, sizes: &mut [SetSize]) {
    let most = fenceposts.most(goal.replicas);
    let total = sum(sizes, |size| size.written);
    if total > most {
        reduce(goal, fenceposts, sizes, total - most);
    } else {
        grow(goal, fenceposts, sizes, most - total);
    }
}

/// The size of a set in proportion to the whole: Kubernetes `getReplicaSetFraction`, which rounds half away from zero.
fn share(size: &SetSize, most: u32, total: u32) -> u32 {
    // A set that was never scaled by us has no record, and a record of 0 divides nothing.
    let before = u64::from(size.most.filter(|most| *most > 0).unwrap_or(total).max(1));
    let product = u64::from(size.written) * u64::from(most);
    u32::try_from((2 * product + before) / (2 * before)).unwrap_or(u32::MAX)
}

/// The active sets, the largest first.
fn by_size(sizes: &[SetSize], newest_first: bool) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sizes.len()).filter(|index| sizes[*index].written > 0).collect();
    if newest_first {
        order.reverse();
    }
    order.sort_by_key(|index| Reverse(sizes[*index].written));
    order
}

fn grow(goal: &RolloutGoal, fenceposts: Fenceposts, sizes: &mut [SetSize], wanted: u32) {
    let most = fenceposts.most(goal.replicas);
    let total = sum(sizes, |size| size.written);
    let mut left = wanted.min(most.saturating_sub(sum(sizes, SetSize::occupied)));
    let order = by_size(sizes, true);
    for index in &order {
        let size = &mut sizes[*index];
        let added = share(size, most, total).saturating_sub(size.written).min(left);
        size.target += added;
        left -= added;
    }
    if let Some(first) = order.first() {
        sizes[*first].target += left;
    }
}

/// Reduces the sets by their shares, as far as enough Machines stay available; what remains is left to the rolling
/// update.
fn reduce(goal: &RolloutGoal, fenceposts: Fenceposts, sizes: &mut [SetSize], excess: u32) {
    let most = fenceposts.most(goal.replicas);
    let total = sum(sizes, |size| size.written);
    let mut left = excess;
    let order = by_size(sizes, false);
    let mut reductions = Vec::new();
    for index in &order {
        let size = &sizes[*index];
        let removed = size.written.saturating_sub(share(size, most, total)).min(left);
        reductions.push((*index, removed));
        left -= removed;
    }
    if let Some((index, removed)) = reductions.first_mut() {
        *removed = (*removed + left).min(sizes[*index].written);
    }
    let available = sum(sizes, SetSize::surely_available);
    let mut budget = available.checked_sub(fenceposts.min_available(goal.replicas));
    for (index, removed) in reductions {
        let size = &mut sizes[index];
        let reduction = size.affordable(removed, budget);
        budget = budget.map(|budget| budget - size.cost(reduction));
        size.target = size.written - reduction;
    }
}
