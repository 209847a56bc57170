//! Whether a recovery would still be planned as it was: someone has read the plan meanwhile. Pure.

use std::collections::BTreeSet;

use super::recovery::{MemberOnDisk, RecoveryPlan, RecoverySource};

/// What has changed since a plan was made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecoveryChange {
    /// Its member cannot be stopped any more, or is the one that etcd was to continue with.
    #[error("{0} does not answer now, and did when the plan was made")]
    Silent(String),
    /// Nothing would stop its member.
    #[error("{0} answers now, and did not when the plan was made")]
    CameBack(String),
    /// Another member has come furthest.
    #[error(
        "etcd would continue with the member of {now}, and with that of {planned} when the plan was made"
    )]
    Survivor {
        /// Its node when the plan was made.
        planned: String,
        /// Its node now.
        now: String,
    },
    /// etcd had its quorum for a while.
    #[error("the etcd member of {0} has been written to since the plan was made")]
    Written(String),
}

/// Compares a plan with the one that would be made now, of the same nodes. The time of the last write is not compared: a
/// member without a leader writes to its log too.
///
/// # Errors
/// The first difference that someone would decide on.
pub fn unchanged<N: ToString>(
    planned: &RecoveryPlan<N>,
    now: &RecoveryPlan<N>,
) -> Result<(), RecoveryChange> {
    let [silent, silent_now] = [planned, now].map(|plan| names(&plan.unreachable));
    if let Some(node) = silent_now.difference(&silent).next() {
        return Err(RecoveryChange::Silent(node.clone()));
    }
    if let Some(node) = silent.difference(&silent_now).next() {
        return Err(RecoveryChange::CameBack(node.clone()));
    }
    let [survivor, survivor_now] = [planned, now].map(|plan| plan.survivor.node.to_string());
    if survivor != survivor_now {
        return Err(RecoveryChange::Survivor { planned: survivor, now: survivor_now });
    }
    let position = |plan: &RecoveryPlan<N>| plan.survivor.data().and_then(|data| data.position);
    let written = position(planned).zip(position(now)).is_some_and(|(planned, now)| planned != now);
    // A snapshot replaces it in any case.
    if written && planned.source == RecoverySource::Member {
        return Err(RecoveryChange::Written(survivor));
    }
    Ok(())
}

fn names<N: ToString>(members: &[MemberOnDisk<N>]) -> BTreeSet<String> {
    members.iter().map(|member| member.node.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::super::recovery::{DiskState, LogPosition, MemberCopy};
    use super::*;

    fn present(node: &'static str, index: Option<u64>) -> MemberOnDisk<&'static str> {
        let position = index.map(|index| LogPosition { votes: true, index, revision: 7, cluster: None });
        let data = MemberCopy { last_write: Timestamp::UNIX_EPOCH, position, has_leader: false };
        MemberOnDisk { node, state: DiskState::Reached { pod: None, data: Some(data) } }
    }

    fn silent(node: &'static str) -> MemberOnDisk<&'static str> {
        MemberOnDisk { node, state: DiskState::Unreachable { reason: "no route".to_owned() } }
    }

    #[test]
    fn a_plan_holds_while_the_same_would_be_planned() {
        let plan = |source, survivor, set_aside: &[_], unreachable: &[_]| RecoveryPlan {
            source,
            survivor,
            set_aside: set_aside.to_vec(),
            unreachable: unreachable.to_vec(),
        };
        let of = |survivor, set_aside: &[_], unreachable: &[_]| {
            plan(RecoverySource::Member, survivor, set_aside, unreachable)
        };
        let (a, b, c) = (|index| present("a", Some(index)), present("b", Some(4)), silent("c"));
        let planned = of(a(9), std::slice::from_ref(&b), std::slice::from_ref(&c));
        for (now, expected) in [
            (planned.clone(), Ok(())),
            // It has restarted: its data is the same.
            (of(present("a", None), std::slice::from_ref(&b), std::slice::from_ref(&c)), Ok(())),
            // The data of one that is set aside does not count.
            (of(a(9), &[present("b", Some(5))], std::slice::from_ref(&c)), Ok(())),
            (of(a(9), &[], &[silent("b"), c.clone()]), Err(RecoveryChange::Silent("b".to_owned()))),
            (of(b.clone(), &[], &[silent("a"), c.clone()]), Err(RecoveryChange::Silent("a".to_owned()))),
            (
                of(a(9), &[b.clone(), present("c", Some(2))], &[]),
                Err(RecoveryChange::CameBack("c".to_owned())),
            ),
            (
                of(b.clone(), &[a(9)], std::slice::from_ref(&c)),
                Err(RecoveryChange::Survivor { planned: "a".to_owned(), now: "b".to_owned() }),
            ),
            (
                of(a(10), std::slice::from_ref(&b), std::slice::from_ref(&c)),
                Err(RecoveryChange::Written("a".to_owned())),
            ),
        ] {
            assert_eq!(unchanged(&planned, &now), expected, "{now:?}");
        }
        let restored = |index| plan(RecoverySource::Snapshot, a(index), &[], &[]);
        assert_eq!(unchanged(&restored(9), &restored(10)), Ok(()));
    }
}
