//! Quorum.

use super::member::{Member, Membership};

/// How many of `voters` must agree: more than half.
pub fn quorum(voters: usize) -> usize {
    voters / 2 + 1
}

/// Whether the healthy voters other than the one with this peer URL are enough.
pub fn has_quorum_without(peer_url: &str, observed: &Membership) -> bool {
    let is_other = |voter: &&Member| voter.peer_urls.iter().all(|url| url != peer_url);
    let healthy = observed.healthy_voters().filter(is_other).count();
    healthy >= quorum(observed.voters().count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcd::member::Health;
    use crate::etcd::simulation::voter;

    #[test]
    fn healthy_voters_count_but_for_the_one_itself() {
        let silent = || Health::Unknown { reason: "no answer".to_owned() };
        for (names, silent_ones, has_quorum) in [
            (vec!["a"], vec![], false),
            (vec!["a", "b"], vec![], false),
            (vec!["a", "b", "c"], vec!["a"], true),
            (vec!["a", "b", "c"], vec!["a", "b"], false),
            (vec!["a", "b", "c", "d", "e"], vec!["a", "b"], true),
            (vec!["a", "b", "c", "d", "e"], vec!["a", "b", "c"], false),
        ] {
            let members = names.iter().zip(1..).map(|(name, id)| {
                let member = voter(id, name);
                if silent_ones.contains(name) { Member { health: silent(), ..member } } else { member }
            });
            let observed = Membership { cluster_id: 1, members: members.collect(), alarms: Vec::new() };
            let without = has_quorum_without(&observed.members[0].peer_urls[0], &observed);
            assert_eq!(without, has_quorum, "{names:?} without an answer of {silent_ones:?}");
        }
    }
}
