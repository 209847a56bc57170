//! Returning the free space of etcd's databases to their file systems, one member at a time.
//!
//! A member answers nothing while it defragments (etcd, "Maintenance"), so the others must be able to do without it, and
//! the leader hands over first. No lease is needed: the list of members does not change, and a join waits for a member
//! that does not answer.

use std::collections::BTreeSet;

use etcd_client::{AlarmAction, AlarmOptions, AlarmType, CompactionOptions};

use super::act::{self, ActError};
use super::client::{CallError, EtcdAccess};
use super::member::{AlarmKind, Member, Membership};
use super::quorum::quorum;

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DefragmentStep {
    /// Forget all revisions before this one. Only a full database calls for it: the API server, which compacts every
    /// five minutes, cannot write then.
    Compact {
        /// The newest.
        revision: i64,
    },
    /// Let this member lead.
    MoveLeader {
        /// Its id.
        to: u64,
    },
    /// Defragment this member.
    Defragment {
        /// Its id.
        id: u64,
    },
    /// Clear the alarm NOSPACE of this member. After the last, etcd accepts writes again.
    ClearAlarm {
        /// Its id.
        member: u64,
    },
    /// Nothing.
    Done,
}

/// Why a member must not be defragmented now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefragmentObstacle {
    /// Without one more voter there would be no quorum, or another one does not work.
    #[error("every voting member of etcd must be healthy: {healthy} of {voters} are, {quorum} must be: {}", complaints.join("; "))]
    Unhealthy {
        /// Healthy voters.
        healthy: usize,
        /// Voters in all.
        voters: usize,
        /// How many must agree.
        quorum: usize,
        /// One for each that is not healthy.
        complaints: Vec<String>,
    },
    /// Members have different data.
    #[error("etcd has the alarm CORRUPT for member {0:x}")]
    Corrupt(u64),
}

/// What a run has done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DefragmentMemory {
    /// Whether old revisions were forgotten.
    pub compacted: bool,
    /// Members that were defragmented, by id.
    pub done: BTreeSet<u64>,
}

/// The next step: those that follow, in the order of their names, and the one that leads last, as a follower. Pure.
///
/// # Errors
/// While a voter is not healthy, or members have different data.
pub fn next(observed: &Membership, memory: &DefragmentMemory) -> Result<DefragmentStep, DefragmentObstacle> {
    let raised = |kind| observed.alarms.iter().find(|alarm| alarm.kind == kind);
    if let Some(alarm) = raised(AlarmKind::Corrupt) {
        return Err(DefragmentObstacle::Corrupt(alarm.member));
    }
    let voters: Vec<&Member> = observed.voters().collect();
    let complaints: Vec<String> = voters
        .iter()
        .filter_map(|voter| Some(format!("{}: {}", voter.title(), voter.health.complaint()?)))
        .collect();
    if !complaints.is_empty() {
        let (voters, unhealthy) = (voters.len(), complaints.len());
        let healthy = voters - unhealthy;
        return Err(DefragmentObstacle::Unhealthy { healthy, voters, quorum: quorum(voters), complaints });
    }
    let full = raised(AlarmKind::NoSpace);
    let newest = voters.iter().filter_map(|voter| voter.status()).map(|status| status.revision).max();
    if let Some(revision) = newest.filter(|_| full.is_some() && !memory.compacted) {
        return Ok(DefragmentStep::Compact { revision });
    }
    let leads = |voter: &Member| voter.status().is_some_and(|status| status.leader);
    let left = || voters.iter().filter(|voter| !memory.done.contains(&voter.id));
    if let Some(follower) = left().find(|voter| !leads(voter)) {
        return Ok(DefragmentStep::Defragment { id: follower.id });
    }
    let Some(leader) = left().next() else {
        return Ok(
            full.map_or(DefragmentStep::Done, |alarm| DefragmentStep::ClearAlarm { member: alarm.member })
        );
    };
    Ok(match voters.iter().find(|voter| voter.id != leader.id) {
        Some(other) => DefragmentStep::MoveLeader { to: other.id },
        None => DefragmentStep::Defragment { id: leader.id },
    })
}

/// Performs one step; [`DefragmentStep::Done`] is nothing. `access` has the deadline of one member's defragmentation.
///
/// # Errors
/// When a request fails. It may have been done.
pub async fn perform(
    access: &EtcdAccess,
    observed: &Membership,
    step: &DefragmentStep,
) -> Result<(), ActError> {
    let one = match step {
        DefragmentStep::Done => return Ok(()),
        DefragmentStep::MoveLeader { to } => return act::move_leader(access, observed, *to).await,
        DefragmentStep::Defragment { id } => observed.members.iter().find(|member| member.id == *id),
        DefragmentStep::Compact { .. } | DefragmentStep::ClearAlarm { .. } => {
            observed.leader().map(|(leader, _)| leader)
        }
    };
    let urls: Vec<&String> = one.ok_or(ActError::NoHealthyVoter)?.client_urls.iter().collect();
    let performed = access.call(&urls, async |mut client| match step {
        DefragmentStep::Compact { revision } => {
            // Physical: the space is free when it returns.
            let physical = CompactionOptions::new().with_physical();
            client.compact(*revision, Some(physical)).await.map(drop)
        }
        DefragmentStep::Defragment { .. } => client.defragment().await.map(drop),
        DefragmentStep::ClearAlarm { member } => {
            // Without a member etcd clears none.
            let mut options = AlarmOptions::new();
            options.with_member(*member);
            client.alarm(AlarmAction::Deactivate, AlarmType::Nospace, Some(options)).await.map(drop)
        }
        DefragmentStep::MoveLeader { .. } | DefragmentStep::Done => Ok(()),
    });
    match performed.await {
        // The API server or another run was faster.
        Err(CallError::Failed(etcd_client::Error::GRpcStatus(status))) if compacted(status.message()) => {
            Ok(())
        }
        performed => performed.map_err(|source| ActError::Unconfirmed { source }),
    }
}

/// etcd's answer where that revision was compacted already (`api/v3rpc/rpctypes/error.go`).
fn compacted(message: &str) -> bool {
    message == "etcdserver: mvcc: required revision has been compacted"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcd::member::Alarm;
    use crate::etcd::simulation::{down, leading, learner, membership, voter};

    fn with(kind: AlarmKind, mut observed: Membership) -> Membership {
        observed.alarms.push(Alarm { member: 1, kind });
        observed
    }

    #[test]
    fn followers_come_first_and_the_leader_hands_over() {
        let mut observed =
            membership(vec![leading(voter(1, "a")), voter(2, "b"), learner(3, "c"), voter(4, "d")]);
        let mut memory = DefragmentMemory::default();
        let mut steps = Vec::new();
        loop {
            let step = next(&observed, &memory).unwrap();
            match step {
                DefragmentStep::Defragment { id } => drop(memory.done.insert(id)),
                DefragmentStep::MoveLeader { to } => {
                    assert_eq!(to, 2);
                    observed.members[0] = voter(1, "a");
                    observed.members[1] = leading(voter(2, "b"));
                }
                DefragmentStep::Done => break,
                DefragmentStep::Compact { .. } | DefragmentStep::ClearAlarm { .. } => panic!("{step:?}"),
            }
            steps.push(step);
        }
        let defragment = |id| DefragmentStep::Defragment { id };
        let expected = [defragment(2), defragment(4), DefragmentStep::MoveLeader { to: 2 }, defragment(1)];
        assert_eq!(steps, expected);
    }

    #[test]
    fn a_full_database_is_compacted_first_and_accepts_writes_last() {
        let observed = with(AlarmKind::NoSpace, membership(vec![leading(voter(1, "a"))]));
        let mut memory = DefragmentMemory::default();
        assert_eq!(next(&observed, &memory), Ok(DefragmentStep::Compact { revision: 8000 }));
        memory.compacted = true;
        assert_eq!(next(&observed, &memory), Ok(DefragmentStep::Defragment { id: 1 }));
        memory.done.insert(1);
        assert_eq!(next(&observed, &memory), Ok(DefragmentStep::ClearAlarm { member: 1 }));
        let cleared = Membership { alarms: Vec::new(), ..observed };
        assert_eq!(next(&cleared, &memory), Ok(DefragmentStep::Done));
    }

    #[test]
    fn nothing_is_done_while_a_voter_is_sick_or_data_differs() {
        let none = DefragmentMemory::default();
        let sick = membership(vec![leading(voter(1, "a")), down(voter(2, "b")), voter(3, "c")]);
        let obstacle = next(&sick, &none).unwrap_err();
        let sentence = "every voting member of etcd must be healthy: 2 of 3 are, 2 must be: b: no answer";
        assert_eq!(obstacle.to_string(), sentence);
        let learning = membership(vec![leading(voter(1, "a")), down(learner(2, "b"))]);
        assert_eq!(next(&learning, &none), Ok(DefragmentStep::Defragment { id: 1 }));
        let corrupt = with(AlarmKind::Corrupt, membership(vec![leading(voter(1, "a"))]));
        assert_eq!(next(&corrupt, &none), Err(DefragmentObstacle::Corrupt(1)));
    }
}
