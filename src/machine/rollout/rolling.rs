//! The sizes of the next step of a rolling update.

use super::fenceposts::Fenceposts;
use super::set_size::{SetSize, sum};

/// Grows the current set as far as `maxSurge` allows, and reduces the others as far as `maxUnavailable` allows. `sizes` are
/// in the order of creation.
pub(super) fn roll(replicas: u32, fenceposts: Fenceposts, sizes: &mut [SetSize], current: usize) {
    resize_current(replicas, fenceposts, sizes, current);
    reduce_others(fenceposts.min_available(replicas), sizes, current);
}

/// Kubernetes `NewRSNewReplicas`, with what is being deleted counted. A size above `replicas` is cut only as far as enough
/// Machines stay available: those that are marked go first, whether they serve or not.
fn resize_current(replicas: u32, fenceposts: Fenceposts, sizes: &mut [SetSize], current: usize) {
    let room = fenceposts.most(replicas).saturating_sub(sum(sizes, SetSize::occupied));
    let available = sum(sizes, SetSize::surely_available);
    let budget = available.checked_sub(fenceposts.min_available(replicas));
    let size = &mut sizes[current];
    size.target = match size.written.checked_sub(replicas) {
        Some(excess) => size.written - size.affordable(excess, budget),
        None => size.written + room.min(replicas - size.written),
    };
}

/// Kubernetes `reconcileOldReplicaSets`: first what is not available, then what is, each from the oldest set on.
fn reduce_others(min_available: u32, sizes: &mut [SetSize], current: usize) {
    let kept = sizes[current].left_available();
    let others = || sizes.iter().enumerate().filter(|(index, _)| *index != current).map(|(_, size)| size);
    // Old Machines that are not available may become so: without new ones in their place, not more of them go than if
    // they were. A cluster whose nodes are all unreachable for a moment loses none.
    let written = others().map(|size| size.written).fold(kept, u32::saturating_add);
    let mut limit = written.saturating_sub(min_available);
    let available = others().map(SetSize::surely_available).fold(kept, u32::saturating_add);
    let mut budget = available.checked_sub(min_available);
    for may_cost in [false, true] {
        for (_, size) in sizes.iter_mut().enumerate().filter(|(index, _)| *index != current) {
            let before = size.written - size.target;
            let allowed = if may_cost { budget } else { budget.and(Some(0)) };
            let reduction = size.affordable(before.saturating_add(limit), allowed).max(before);
            budget = budget.map(|budget| budget - size.cost(reduction));
            limit -= reduction - before;
            size.target = size.written - reduction;
        }
    }
}
