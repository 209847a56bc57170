//! What roles have left on a node that has them no more.

use std::collections::BTreeSet;

use crate::state::Compiled;

/// Of the states of every role, what is neither in the node's own nor one of these files. Pure.
///
/// The bootstrap node has the keys of the cluster in the same files in which a master has its copies: they stay.
pub fn other_roles(every: Vec<Compiled>, own: &[Compiled], kept: &BTreeSet<String>) -> Vec<Compiled> {
    let own: BTreeSet<_> = own.iter().map(|resource| &resource.id).collect();
    let is_other = |one: &Compiled| !own.contains(&one.id) && !kept.contains(&one.id.name);
    every.into_iter().filter(is_other).collect()
}
