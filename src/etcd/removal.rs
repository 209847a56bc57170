//! How a member leaves etcd with its node: from the members to the next safe move.
//!
//! # Guarantees
//! - A healthy voter is removed only when every other voter is healthy, and quorum agrees before and holds after it.
//! - One that is not healthy is removed while the healthy ones among the others have quorum, before and after it: they lose
//!   no vote, and of several sick members one can go first.
//! - The last voter is never removed.
//! - A leader hands over before it is removed, so that writes do not wait for an election.
//!
//! # Assumptions
//! As of [`super::membership`]: the caller holds the Lease, and observes again after every move.

use serde::{Deserialize, Serialize};

use super::member::{Member, Membership};
use super::membership::{MembershipChange, complaints, leaderless, list};
use super::quorum::quorum;

/// The member that shall leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeavingMember {
    /// The node's name, which is the member's.
    pub name: String,
    /// Of a member that has not started, and so has no name.
    pub peer_url: Option<String>,
}

impl LeavingMember {
    /// Whether it is this member of the list.
    pub fn is(&self, member: &Member) -> bool {
        member.name == self.name || self.peer_url.as_ref().is_some_and(|url| member.peer_urls.contains(url))
    }

    /// As it is listed, if it is.
    pub fn listed<'a>(&self, observed: &'a Membership) -> Option<&'a Member> {
        observed.members.iter().find(|member| self.is(member))
    }
}

/// The next thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemovalMove {
    /// It is not in the list.
    Holds,
    /// Another voter shall lead.
    MoveLeader {
        /// That voter.
        to: u64,
    },
    /// Change the membership, through [`super::act::perform`].
    Change(MembershipChange),
    /// The others must be healthy first.
    WaitForVoters {
        /// One line for each that is not.
        complaints: Vec<String>,
    },
    /// Waiting does not help.
    Blocked(RemovalObstacle),
}

/// Why a member must stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum RemovalObstacle {
    /// Without it there is no etcd.
    #[error("etcd member {name} is the only voter")]
    OnlyVoter {
        /// The member.
        name: String,
    },
    /// The others would not have quorum, or too few are there to agree.
    #[error(
        "etcd member {name} cannot be removed: of the {others} other voters {healthy} are healthy; \
         quorum is {before} of {} before and {after} of {others} after{}", others + 1, list(complaints)
    )]
    NoQuorum {
        /// The member.
        name: String,
        /// Healthy voters among the others.
        healthy: usize,
        /// The other voters.
        others: usize,
        /// How many must agree to its removal, itself included.
        before: usize,
        /// How many must agree to anything after it.
        after: usize,
        /// One line for each other voter that is not healthy.
        complaints: Vec<String>,
    },
}

/// What brings the removal nearer, given what was just observed.
pub fn next_removal(leaving: &LeavingMember, observed: &Membership) -> RemovalMove {
    let Some(member) = leaving.listed(observed) else { return RemovalMove::Holds };
    let change = RemovalMove::Change(MembershipChange::Retire { id: member.id, voter: !member.is_learner });
    if member.is_learner {
        return change;
    }
    if let Some(obstacle) = obstacle(member, observed) {
        return RemovalMove::Blocked(obstacle);
    }
    let complaints = match member.status() {
        Some(_) => complaints(observed, Some(member.id)),
        None => leaderless(observed),
    };
    if !complaints.is_empty() {
        return RemovalMove::WaitForVoters { complaints };
    }
    if member.status().is_some_and(|status| status.leader) {
        let others = observed.voters().filter(|voter| voter.id != member.id);
        let ahead = others.max_by_key(|voter| voter.status().map(|status| status.raft_applied));
        return ahead.map_or(change, |voter| RemovalMove::MoveLeader { to: voter.id });
    }
    change
}

fn obstacle(ours: &Member, observed: &Membership) -> Option<RemovalObstacle> {
    let name = ours.title().to_owned();
    let others = observed.voters().count() - 1;
    if others == 0 {
        return Some(RemovalObstacle::OnlyVoter { name });
    }
    let healthy = observed.healthy_voters().filter(|voter| voter.id != ours.id).count();
    let (before, after) = (quorum(others + 1), quorum(others));
    let agreeing = healthy + usize::from(ours.status().is_some());
    (healthy < after || agreeing < before).then(|| RemovalObstacle::NoQuorum {
        name,
        healthy,
        others,
        before,
        after,
        complaints: complaints(observed, Some(ours.id)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcd::simulation::{at, down, leading, learner, membership, peer_url, unstarted, voter};

    fn leaving(name: &str) -> LeavingMember {
        LeavingMember { name: name.to_owned(), peer_url: Some(peer_url(name)) }
    }

    fn retire(id: u64, voter: bool) -> RemovalMove {
        RemovalMove::Change(MembershipChange::Retire { id, voter })
    }

    #[test]
    fn a_member_leaves_only_where_the_others_go_on_without_it() {
        let (a, b, c) = (|| leading(voter(1, "a")), || voter(2, "b"), || voter(3, "c"));
        let waits = |line: &str| RemovalMove::WaitForVoters { complaints: vec![line.to_owned()] };
        let cases: Vec<(&str, &str, Vec<Member>, RemovalMove)> = vec![
            ("no member", "x", vec![a(), b()], RemovalMove::Holds),
            ("a follower", "b", vec![a(), b(), c()], retire(2, true)),
            ("the leader", "a", vec![a(), b(), at(c(), 9_000)], RemovalMove::MoveLeader { to: 2 }),
            ("a sick one", "b", vec![a(), down(b()), c()], retire(2, true)),
            ("a learner", "c", vec![a(), b(), learner(3, "c")], retire(3, false)),
            ("one that never started", "c", vec![a(), unstarted(learner(3, "c"))], retire(3, false)),
            ("of two", "b", vec![a(), b()], retire(2, true)),
            (
                "of five, one of the others sick",
                "b",
                vec![a(), b(), down(c()), voter(4, "d"), voter(5, "e")],
                waits("c: no answer"),
            ),
            (
                "of five, a sick one beside another",
                "b",
                vec![a(), down(b()), down(c()), voter(4, "d"), voter(5, "e")],
                retire(2, true),
            ),
            (
                "a sick one, and nobody leads",
                "b",
                vec![voter(1, "a"), down(b()), c()],
                waits("no member reports that it is the leader"),
            ),
            (
                "nobody leads",
                "b",
                vec![voter(1, "a"), b(), c()],
                waits("no member reports that it is the leader"),
            ),
        ];
        for (what, name, members, expected) in cases {
            assert_eq!(next_removal(&leaving(name), &membership(members)), expected, "{what}");
        }
    }

    #[test]
    fn what_quorum_needs_stays_and_the_arithmetic_is_shown() {
        let (a, b, c) = (|| leading(voter(1, "a")), || voter(2, "b"), || voter(3, "c"));
        let cases = [
            (vec![a()], "a", "etcd member a is the only voter"),
            (vec![a(), learner(2, "b")], "a", "etcd member a is the only voter"),
            (
                vec![a(), b(), down(c())],
                "b",
                "etcd member b cannot be removed: of the 2 other voters 1 are healthy; quorum is 2 of 3 before and 2 of 2 after (c: no answer)",
            ),
            (
                vec![a(), down(b()), down(c()), down(voter(4, "d")), voter(5, "e")],
                "b",
                "etcd member b cannot be removed: of the 4 other voters 2 are healthy; quorum is 3 of 5 before and 3 of 4 after (c: no answer; d: no answer)",
            ),
            (
                vec![a(), down(b())],
                "b",
                "etcd member b cannot be removed: of the 1 other voters 1 are healthy; quorum is 2 of 2 before and 1 of 1 after",
            ),
        ];
        for (members, name, expected) in cases {
            let RemovalMove::Blocked(obstacle) = next_removal(&leaving(name), &membership(members)) else {
                panic!("{name} may leave");
            };
            assert_eq!(obstacle.to_string(), expected);
        }
    }
}
