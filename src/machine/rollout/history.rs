//! Revision numbers, and which old sets are deleted.

use super::observed_set::ObservedSet;

/// The revision of the current set, and what it was before. A set that is used again after others gets the next number,
/// as in Kubernetes: the greatest number is always the current template.
pub(super) fn revision(sets: &[&ObservedSet], current: Option<usize>) -> (u64, Vec<u64>) {
    let own = current.and_then(|index| sets.get(index));
    let others = sets.iter().enumerate().filter(|(index, _)| Some(*index) != current);
    let greatest = others.map(|(_, set)| set.revision).max().unwrap_or(0);
    let mut history = own.map(|set| set.history.clone()).unwrap_or_default();
    match own {
        Some(set) if set.revision > greatest => (set.revision, history),
        own => {
            history.extend(own.map(|set| set.revision).filter(|revision| *revision > 0));
            (greatest.saturating_add(1), history)
        }
    }
}

/// The old sets to delete beyond `limit`, lowest revision first: those without replicas and without Machines.
pub(super) fn obsolete(sets: &[&ObservedSet], current: Option<usize>, limit: u32) -> Vec<String> {
    let others = sets.iter().enumerate().filter(|(index, _)| Some(*index) != current);
    let mut empty: Vec<&ObservedSet> = others
        .map(|(_, set)| *set)
        .filter(|set| set.replicas == 0 && set.machines.is_empty() && !set.deleting)
        .collect();
    empty.sort_by(|one, other| {
        (one.revision, one.created, &one.name).cmp(&(other.revision, other.created, &other.name))
    });
    let kept = usize::try_from(limit).unwrap_or(usize::MAX);
    let excess = empty.len().saturating_sub(kept);
    empty.into_iter().take(excess).map(|set| set.name.clone()).collect()
}
