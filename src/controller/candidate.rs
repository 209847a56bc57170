//! Who can have the machine controllers, and when one that stands by may take them.

use jiff::{SignedDuration, Timestamp};

use crate::kube_api::lease::{EXPIRY, LeaseState};

/// How much later than the preferred process one that stands by takes a Lease that is not renewed: a restart of the
/// preferred one does not move the controllers.
const DELAY: SignedDuration = SignedDuration::from_secs(10);

/// A process that can have the machine controllers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Identifies the process: `bootstrap/4711`.
    pub identity: String,
    /// Whether it is that of the bootstrap node.
    pub rank: Rank,
}

/// Whose the controllers are when several processes run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rank {
    /// That of the bootstrap node: it takes the Lease when it is free, and else requests it.
    Preferred,
    /// That of another master: it takes the Lease when nobody has renewed it, and releases it when it is requested.
    StandBy,
}

/// What one that stands by has seen of the Lease.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// When the Lease is its last holder's no longer.
    expires: Option<Timestamp>,
}

impl Watch {
    /// Whether it may take the Lease. One that was released is its last holder's for as long as if it had not been; before
    /// any holder was seen, for [`EXPIRY`] from now.
    pub(super) fn may_take(&mut self, state: &LeaseState, now: Timestamp) -> bool {
        // A Lease may have any time in it.
        let until = |at: Timestamp, added: SignedDuration| at.saturating_add(added).unwrap_or(Timestamp::MAX);
        match state {
            LeaseState::HeldBy(holder) => {
                self.expires = Some(holder.expires);
                false
            }
            LeaseState::Ours => true,
            LeaseState::Free => {
                let term = SignedDuration::try_from(EXPIRY).unwrap_or(SignedDuration::MAX);
                let expires = *self.expires.get_or_insert_with(|| until(now, term));
                now >= until(expires, DELAY)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kube_api::lease::LeaseHolder;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn held(renewed: i64) -> LeaseState {
        let (name, renewed, expires) = ("b/1".to_owned(), at(renewed), at(renewed + 30));
        LeaseState::HeldBy(LeaseHolder { name, renewed, expires })
    }

    /// What is seen, when, and whether it is taken.
    type Seen = (LeaseState, i64, bool);

    #[test]
    fn a_lease_until_the_end_of_time_is_not_taken() {
        let mut watch = Watch::default();
        let holder = LeaseHolder { name: "b/1".to_owned(), renewed: at(100), expires: Timestamp::MAX };
        assert!(!watch.may_take(&LeaseState::HeldBy(holder), at(100)));
        assert!(!watch.may_take(&LeaseState::Free, at(200)));
    }

    #[test]
    fn a_lease_is_taken_when_its_holder_does_not_come_back() {
        use LeaseState::{Free, Ours};
        let cases: [&[Seen]; 6] = [
            // Not renewed any more.
            &[(held(100), 100, false), (held(100), 129, false), (Free, 130, false), (Free, 140, true)],
            // Released at 105, for a restart.
            &[(held(100), 104, false), (Free, 109, false), (held(110), 114, false), (Free, 149, false)],
            // Released, and nobody comes.
            &[(held(100), 104, false), (Free, 109, false), (Free, 139, false), (Free, 144, true)],
            // It has just started, and has seen no holder.
            &[(Free, 100, false), (Free, 139, false), (Free, 140, true)],
            &[(Free, 100, false), (held(101), 105, false), (Free, 139, false), (Free, 141, true)],
            &[(Ours, 100, true)],
        ];
        for case in cases {
            let mut watch = Watch::default();
            for (state, now, expected) in case {
                let found = watch.may_take(state, at(*now));
                assert_eq!(found, *expected, "{state:?} at {now} of {case:?}");
            }
        }
    }
}
