//! Which object the next pass is over, and when. Pure; the clock is an argument.
//!
//! # Guarantees
//! - One pass at a time over one object: what becomes due during a pass is due after it.
//! - Of several that are due, the one that is due for longest is next, and of those of one time the one that was added
//!   first.
//! - An object waits for one time alone: an earlier one replaces a later one.
//! - After the n-th failure in a row, 2^(n-1) s pass before the next attempt, at most 60 s; a change does not shorten
//!   that, only a clock that is set back.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::machine_pass::NextPass;
use super::pass_key::PassKey;

/// Before a pass is repeated at once: watches mostly show by then what it has written, so that it is not decided again on
/// the same caches.
const REPEAT: SignedDuration = SignedDuration::from_millis(5);
/// The pause after the first failure.
const FIRST_PAUSE: SignedDuration = SignedDuration::from_secs(1);
/// The longest pause.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_secs(60);

/// What has become of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassEnd {
    /// It succeeded; when the next one is due.
    Done(NextPass),
    /// It failed.
    Failed,
}

/// Objects that are due, or will be.
#[derive(Debug, Clone, Default)]
pub struct PassQueue {
    due: BTreeMap<PassKey, Turn>,
    order: BTreeSet<(Turn, PassKey)>,
    /// What became due while a pass runs.
    running: BTreeMap<PassKey, Option<Timestamp>>,
    failures: BTreeMap<PassKey, Failures>,
    added: u64,
}

/// When it is due, and how many were added before it.
type Turn = (Timestamp, u64);

#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    /// No attempt begins before.
    until: Timestamp,
}

impl PassQueue {
    /// A pass over this object is due at this time.
    pub fn add(&mut self, key: PassKey, at: Timestamp) {
        if let Some(again) = self.running.get_mut(&key) {
            *again = Some(again.map_or(at, |present| present.min(at)));
            return;
        }
        let at = self.failures.get(&key).map_or(at, |failures| failures.until.max(at));
        if let Some(present) = self.due.get(&key) {
            if present.0 <= at {
                return;
            }
            self.order.remove(&(*present, key.clone()));
        }
        self.added += 1;
        let turn = (at, self.added);
        self.due.insert(key.clone(), turn);
        self.order.insert((turn, key));
    }

    /// The clock was set back to `now`. Every time that was taken from it before may be far ahead: all objects are due.
    pub fn set_back(&mut self, now: Timestamp) {
        self.failures.values_mut().for_each(|failures| failures.until = now);
        self.running.values_mut().for_each(|again| *again = Some(now));
        self.due.clear();
        for (_, key) in std::mem::take(&mut self.order) {
            self.add(key, now);
        }
    }

    /// The next object that is due, whose pass runs from now on.
    pub fn take(&mut self, now: Timestamp) -> Option<PassKey> {
        let (turn, key) = self.order.first()?.clone();
        if turn.0 > now {
            return None;
        }
        self.order.remove(&(turn, key.clone()));
        self.due.remove(&key);
        self.running.insert(key.clone(), None);
        Some(key)
    }

    /// The pass over an object has ended.
    pub fn end(&mut self, key: &PassKey, end: PassEnd, now: Timestamp) {
        let changed = self.running.remove(key).flatten();
        let next = match end {
            PassEnd::Failed => {
                let count = self.failures.get(key).map_or(0, |failures| failures.count).saturating_add(1);
                let until = now.checked_add(pause(count)).unwrap_or(Timestamp::MAX);
                self.failures.insert(key.clone(), Failures { count, until });
                Some(until)
            }
            PassEnd::Done(next) => {
                self.failures.remove(key);
                match next {
                    NextPass::Now => Some(now.checked_add(REPEAT).unwrap_or(Timestamp::MAX)),
                    NextPass::At(at) => Some(at),
                    NextPass::OnChange => None,
                }
            }
        };
        for at in [changed, next].into_iter().flatten() {
            self.add(key.clone(), at);
        }
    }

    /// Objects that are due and whose passes have not begun.
    pub fn waiting(&self, now: Timestamp) -> usize {
        self.order.iter().take_while(|((due, _), _)| *due <= now).count()
    }

    /// When the next object is due.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.order.first().map(|((at, _), _)| *at)
    }
}

fn pause(count: u32) -> SignedDuration {
    let doublings = count.saturating_sub(1).min(6);
    FIRST_PAUSE.saturating_mul(1 << doublings).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> PassKey {
        PassKey::Host(name.to_owned())
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn taken(queue: &mut PassQueue, now: i64) -> Vec<String> {
        std::iter::from_fn(|| queue.take(at(now))).map(|key| key.to_string()).collect()
    }

    #[test]
    fn the_longest_due_is_first_and_what_is_added_twice_is_taken_once() {
        let mut queue = PassQueue::default();
        for (name, due) in [("z", 5), ("a", 5), ("b", 3), ("c", 9), ("z", 7), ("a", 4), ("z", 5)] {
            queue.add(key(name), at(due));
        }
        assert_eq!(queue.next_due(), Some(at(3)));
        assert_eq!([2, 3, 4, 5, 9].map(|now| queue.waiting(at(now))), [0, 1, 2, 3, 4]);
        assert_eq!(taken(&mut queue, 2), [""; 0]);
        assert_eq!(taken(&mut queue, 5), ["host/b", "host/a", "host/z"]);
        assert_eq!(queue.next_due(), Some(at(9)));
        queue.add(key("c"), at(6));
        assert_eq!(taken(&mut queue, 6), ["host/c"]);
        assert_eq!(queue.next_due(), None);
    }

    #[test]
    fn what_changes_during_a_pass_is_due_after_it() {
        let mut queue = PassQueue::default();
        queue.add(key("a"), at(1));
        assert_eq!(taken(&mut queue, 1), ["host/a"]);
        queue.add(key("a"), at(2));
        assert_eq!(taken(&mut queue, 2), [""; 0], "one pass at a time");
        queue.end(&key("a"), PassEnd::Done(NextPass::At(at(60))), at(3));
        assert_eq!(taken(&mut queue, 3), ["host/a"]);
        queue.end(&key("a"), PassEnd::Done(NextPass::OnChange), at(4));
        assert_eq!(queue.next_due(), None);
    }

    #[test]
    fn the_end_of_a_pass_decides_when_the_next_is_due() {
        for (end, expected) in [
            (PassEnd::Done(NextPass::Now), Some(at(10) + REPEAT)),
            (PassEnd::Done(NextPass::At(at(15))), Some(at(15))),
            (PassEnd::Done(NextPass::OnChange), None),
            (PassEnd::Failed, Some(at(11))),
        ] {
            let mut queue = PassQueue::default();
            queue.add(key("a"), at(1));
            taken(&mut queue, 1);
            queue.end(&key("a"), end, at(10));
            assert_eq!(queue.next_due(), expected, "{end:?}");
        }
    }

    #[test]
    fn all_objects_are_due_after_the_clock_was_set_back() {
        let mut queue = PassQueue::default();
        queue.add(key("failed"), at(1000));
        queue.add(key("running"), at(1000));
        assert_eq!(taken(&mut queue, 1000), ["host/failed", "host/running"]);
        queue.end(&key("failed"), PassEnd::Failed, at(1000));
        queue.add(key("later"), at(1060));
        queue.set_back(at(400));
        assert_eq!(taken(&mut queue, 400), ["host/failed", "host/later"]);
        queue.end(&key("running"), PassEnd::Done(NextPass::At(at(1060))), at(400));
        assert_eq!(taken(&mut queue, 400), ["host/running"], "its pass may have read the clock before");
        queue.end(&key("failed"), PassEnd::Failed, at(400));
        assert_eq!(queue.next_due(), Some(at(402)), "failures in a row still count");
    }

    #[test]
    fn pauses_double_after_failures_and_a_change_does_not_end_them() {
        let mut queue = PassQueue::default();
        let (mut now, mut pauses) = (0, Vec::new());
        queue.add(key("a"), at(0));
        for _ in 0..9 {
            assert_eq!(taken(&mut queue, now), ["host/a"]);
            queue.add(key("a"), at(now));
            queue.end(&key("a"), PassEnd::Failed, at(now));
            queue.add(key("a"), at(now));
            let due = queue.next_due().unwrap().as_second();
            pauses.push(due - now);
            now = due;
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(taken(&mut queue, now), ["host/a"]);
        queue.end(&key("a"), PassEnd::Done(NextPass::OnChange), at(now));
        queue.add(key("a"), at(now));
        assert_eq!(taken(&mut queue, now), ["host/a"], "a success ends the pauses");
    }
}
