//! Whether a member may go.

use super::member::Membership;

/// Why a member may not be removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No member has this id.
    #[error("no etcd member has the id {id:x}")]
    NotAMember {
        /// What was asked for.
        id: u64,
    },
    /// It is the cluster.
    #[error("{name} is the only voting member of etcd")]
    LastVoter {
        /// Its name.
        name: String,
    },
    /// The removal could not even be agreed on.
    #[error("etcd has no quorum: {healthy} of {voters} voting members are healthy, {quorum} are needed")]
    NoQuorum {
        /// Voters now.
        voters: usize,
        /// Of which healthy.
        healthy: usize,
        /// Needed of these.
        quorum: usize,
    },
    /// What is left would have no quorum.
    #[error(
        "without {name}, {healthy} of {voters} voting members of etcd would be healthy, and {quorum} are needed"
    )]
    QuorumLost {
        /// Of the member to remove.
        name: String,
        /// Voters afterwards.
        voters: usize,
        /// Of which healthy.
        healthy: usize,
        /// Needed of these.
        quorum: usize,
    },
}

/// How many of `voters` must agree: more than half.
pub fn quorum(voters: usize) -> usize {
    voters / 2 + 1
}

/// Whether a member can be removed with quorum both to decide it and to go on afterwards.
///
/// With V voters of which H are known to be healthy, removing a voter needs H ≥ quorum(V) now, and then
/// H' ≥ quorum(V - 1), where H' is H less the member itself if it is healthy. A voter whose health is not known
/// counts as lost. Learners have no vote: removing one needs quorum now and nothing else.
///
/// # Errors
/// The [`Refusal`] says which of these does not hold.
pub fn may_remove(observed: &Membership, id: u64) -> Result<(), Refusal> {
    let member = observed.members.iter().find(|member| member.id == id).ok_or(Refusal::NotAMember { id })?;
    let voters = observed.voters().count();
    let healthy = observed.voters().filter(|voter| voter.status().is_some()).count();
    if !member.is_learner && voters == 1 {
        return Err(Refusal::LastVoter { name: member.title().to_owned() });
    }
    if healthy < quorum(voters) {
        return Err(Refusal::NoQuorum { voters, healthy, quorum: quorum(voters) });
    }
    if member.is_learner {
        return Ok(());
    }
    let left = healthy - usize::from(member.status().is_some());
    if left < quorum(voters - 1) {
        return Err(Refusal::QuorumLost {
            name: member.title().to_owned(),
            voters: voters - 1,
            healthy: left,
            quorum: quorum(voters - 1),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcd::simulation::{down, learner, membership, voter};

    #[test]
    fn a_member_goes_only_if_quorum_stays() {
        // (healthy voters, dead voters, remove a dead one?, allowed)
        for (healthy, dead, remove_dead, allowed) in [
            (1, 0, false, false),
            (2, 0, false, true),
            (1, 1, true, false),
            (1, 1, false, false),
            (3, 0, false, true),
            (2, 1, true, true),
            (2, 1, false, false),
            (1, 2, true, false),
            (4, 1, false, true),
            (3, 2, true, true),
            (3, 2, false, false),
            (5, 0, false, true),
        ] {
            let mut members: Vec<_> = (0..healthy).map(|n| voter(n, "h")).collect();
            members.extend((0..dead).map(|n| down(voter(100 + n, "d"))));
            let id = if remove_dead { 100 } else { 0 };
            let answer = may_remove(&membership(members), id);
            assert_eq!(answer.is_ok(), allowed, "{healthy} + {dead} dead: {answer:?}");
        }
    }

    #[test]
    fn a_learner_may_go_while_there_is_quorum() {
        assert_eq!(may_remove(&membership(vec![voter(1, "a"), learner(2, "b")]), 2), Ok(()));
        assert_eq!(
            may_remove(&membership(vec![voter(1, "a"), down(voter(3, "c")), learner(2, "b")]), 2),
            Err(Refusal::NoQuorum { voters: 2, healthy: 1, quorum: 2 })
        );
    }

    #[test]
    fn the_last_voter_and_strangers_are_refused() {
        let one = membership(vec![voter(1, "a")]);
        assert_eq!(may_remove(&one, 1), Err(Refusal::LastVoter { name: "a".to_owned() }));
        assert_eq!(may_remove(&one, 9), Err(Refusal::NotAMember { id: 9 }));
    }
}
