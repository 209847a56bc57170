//! Whether a learner makes progress. Pure.
//!
//! A learner that copies a large database may take hours, so its limit counts from its last progress. etcd does not
//! report the copy of a snapshot: until it is complete, the learner serves no client and has no name, and only the
//! size of its files grows.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::member::{Member, Membership};

/// A learner is close when it is at most this many log entries behind. etcd itself asks for 90 percent of the leader's
/// log only (`readyPercentThreshold` in its server), which is far away in an old cluster.
const CLOSE_ENOUGH: u64 = 1000;
/// What is smaller or larger by less than this part is as large.
const PART: u64 = 8;

/// One learner, and when it last made progress.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearnerWatch {
    /// The learner.
    pub id: u64,
    /// When it last made progress, or was first seen; since the run began.
    pub since: Duration,
    /// Whether it has started.
    started: bool,
    /// Whether it was close to the leader: no more progress is possible.
    caught_up: bool,
    /// The most log entries that it was seen to have applied.
    applied: u64,
    /// The largest size of its files, bytes.
    bytes: u64,
    /// The last size of its files, bytes.
    last_bytes: u64,
    /// Whether its files shrank: a copy failed, and etcd copies again.
    copies_again: bool,
}

impl LearnerWatch {
    /// Takes in what was observed at `now`. Another learner than before is watched from the beginning.
    #[must_use]
    pub fn observed(before: Option<Self>, observed: &Membership, learner: &Member, now: Duration) -> Self {
        let started = !learner.name.is_empty();
        let applied = learner.status().map_or(0, |status| status.raft_applied);
        let close = is_close(observed, learner);
        let Some(before) = before.filter(|before| before.id == learner.id) else {
            return Self {
                id: learner.id,
                since: now,
                started,
                caught_up: close,
                applied,
                ..Self::default()
            };
        };
        let progress = !before.caught_up && (started && !before.started || close || applied > before.applied);
        Self {
            since: if progress { now } else { before.since },
            started: started || before.started,
            caught_up: close || before.caught_up,
            applied: applied.max(before.applied),
            ..before
        }
    }

    /// Takes in the size of its files, bytes.
    pub fn has_files(&mut self, bytes: u64, now: Duration) {
        self.copies_again |= bytes < self.last_bytes - self.last_bytes / PART;
        self.last_bytes = bytes;
        // Of copies that fail again and again, each is seen at a random size, and now and then at the largest so far.
        let needed = if self.copies_again { self.bytes / PART } else { 0 };
        if bytes > self.bytes + needed {
            // The first size is no progress: the files may be an hour old.
            if self.bytes > 0 && !self.caught_up {
                self.since = now;
            }
            self.bytes = bytes;
        }
    }
}

/// Whether a learner has nearly all that the leader has.
pub fn is_close(observed: &Membership, learner: &Member) -> bool {
    observed.leader().zip(learner.status()).is_some_and(|((_, leader), own)| {
        let behind = leader.raft_applied.saturating_sub(own.raft_applied);
        behind <= CLOSE_ENOUGH && behind.saturating_mul(10) <= leader.raft_applied
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcd::simulation::{at, down, leading, learner, membership, unstarted, voter};

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Each observation is one second after the one before; the answer is when progress was last made.
    fn last_progress(seen: &[Member]) -> u64 {
        let mut watch = None;
        for (second, member) in seen.iter().enumerate() {
            let observed = membership(vec![leading(voter(1, "a")), member.clone()]);
            let now = seconds(u64::try_from(second).unwrap());
            watch = Some(LearnerWatch::observed(watch, &observed, member, now));
        }
        watch.unwrap().since.as_secs()
    }

    #[test]
    fn progress_is_what_brings_a_learner_nearer_to_its_vote() {
        let new = || unstarted(learner(9, "n"));
        let copying = |applied| at(learner(9, "n"), applied);
        let cases: Vec<(&str, Vec<Member>, u64)> = vec![
            ("never started", vec![new(), new(), new()], 0),
            ("starts", vec![new(), copying(0), copying(0)], 1),
            ("copies", vec![copying(10), copying(20), copying(30)], 2),
            ("stops", vec![copying(10), copying(20), copying(20), copying(20)], 1),
            ("goes back and copies the same again", vec![copying(20), copying(5), copying(20)], 0),
            ("does not answer in between", vec![copying(5), down(copying(5)), copying(6)], 2),
            ("catches up", vec![copying(5), copying(9_500), copying(9_600), copying(10_000)], 1),
            ("falls behind again", vec![copying(9_500), copying(5), copying(9_500)], 0),
            ("is another one", vec![copying(20), at(learner(8, "n"), 5)], 1),
        ];
        for (what, seen, expected) in cases {
            assert_eq!(last_progress(&seen), expected, "{what}");
        }
    }

    #[test]
    fn files_that_grow_are_progress_before_the_learner_answers() {
        let new = unstarted(learner(9, "n"));
        let observed = membership(vec![leading(voter(1, "a")), new.clone()]);
        let mut watch = LearnerWatch::observed(None, &observed, &new, seconds(0));
        for (second, bytes, expected) in
            [(1, 1000, 0), (2, 2000, 2), (3, 2000, 2), (4, 1900, 2), (5, 2000, 2), (6, 2001, 6)]
        {
            watch.has_files(bytes, seconds(second));
            assert_eq!(watch.since.as_secs(), expected, "{bytes} bytes in second {second}");
        }
        // A copy that fails again and again, on a full disk for example.
        for (second, bytes, expected) in [
            (7, 1000, 6),
            (8, 2002, 6),
            (9, 800, 6),
            (10, 2150, 6),
            (11, 700, 6),
            (12, 2300, 12),
            (13, 2301, 12),
        ] {
            watch.has_files(bytes, seconds(second));
            assert_eq!(watch.since.as_secs(), expected, "{bytes} bytes in second {second}, copied again");
        }
    }
}
