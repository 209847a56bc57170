//! A Machine whose Node does not join in time is replaced, and a host that fails again and again leaves the pool.

use jiff::{SignedDuration, Timestamp};

use super::job_queue::JobQueue;

/// From the claim of the host to the Node, unless configured otherwise.
pub const JOIN_TIMEOUT: SignedDuration = SignedDuration::from_hours(2);

/// Failed joins of a host, in a row, after which it is quarantined, unless configured otherwise.
pub const FAILED_JOINS: u32 = 3;

/// What is known of a Machine's join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JoinAttempt {
    /// When it claimed its host; `None` while it waits for one, however long that takes.
    pub claimed: Option<Timestamp>,
    /// How long its jobs have waited for their turn.
    pub queue: JobQueue,
    /// Whether its Node has joined: `status.nodeRef` was set, once.
    pub joined: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Whether a machine set owns it. Without one, nothing would replace it: it is kept for a person to look at.
    pub owned: bool,
}

/// What to do about a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinVerdict {
    /// No time passes: it waits for a host or for the turn of a job, has joined, is being deleted, or belongs to no
    /// machine set.
    NoDeadline,
    /// It has until then.
    Until(Timestamp),
    /// Delete the Machine with the reason `JoinClusterTimeoutError`, and record a failed join of its host.
    Expired,
}

/// Judges a join. `timeout` is `None` to wait for ever.
///
/// The time runs from the claim, not from the creation of the Machine as in machine-controller: hosts are waited for.
/// It does not run while a job waits until other hosts are provisioned.
pub fn judge(attempt: &JoinAttempt, timeout: Option<SignedDuration>, now: Timestamp) -> JoinVerdict {
    let (Some(claimed), Some(timeout)) = (attempt.claimed, timeout) else {
        return JoinVerdict::NoDeadline;
    };
    if attempt.joined || attempt.deleting || !attempt.owned || attempt.queue.since.is_some() {
        return JoinVerdict::NoDeadline;
    }
    match claimed.checked_add(timeout.saturating_add(attempt.queue.waited)) {
        Ok(deadline) if now >= deadline => JoinVerdict::Expired,
        Ok(deadline) => JoinVerdict::Until(deadline),
        // Beyond what a time can be.
        Err(_) => JoinVerdict::NoDeadline,
    }
}

/// What becomes of a host whose Machine has failed to join, once it is reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostFate {
    /// It is available again; others are preferred ([`super::host_choice`]).
    Pool,
    /// A person must look at it.
    Quarantine,
}

/// Decides by the number of failed joins since the last Node that joined on this host, this one included. `limit` 0 never
/// quarantines.
pub fn fate_of_host(failed_joins: u32, limit: u32) -> HostFate {
    if limit > 0 && failed_joins >= limit { HostFate::Quarantine } else { HostFate::Pool }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_time_runs_from_the_claim() {
        let (claimed, queue) = (Some(at(1_000)), JobQueue::default());
        let fresh = JoinAttempt { claimed, queue, joined: false, deleting: false, owned: true };
        let queued = |since: Option<i64>, seconds| {
            let waited = SignedDuration::from_secs(seconds);
            JoinAttempt { queue: JobQueue { since: since.map(at), waited }, ..fresh }
        };
        let two_hours = Some(JOIN_TIMEOUT);
        for (attempt, timeout, now, expected) in [
            (fresh, two_hours, 1_000, JoinVerdict::Until(at(8_200))),
            (fresh, two_hours, 8_199, JoinVerdict::Until(at(8_200))),
            (fresh, two_hours, 8_200, JoinVerdict::Expired),
            (fresh, two_hours, 900_000, JoinVerdict::Expired),
            // The clock of this host was set back.
            (fresh, two_hours, 10, JoinVerdict::Until(at(8_200))),
            (fresh, None, 900_000, JoinVerdict::NoDeadline),
            (fresh, Some(SignedDuration::ZERO), 1_000, JoinVerdict::Expired),
            (fresh, Some(SignedDuration::MAX), 900_000, JoinVerdict::NoDeadline),
            (queued(Some(1_010), 0), two_hours, 900_000, JoinVerdict::NoDeadline),
            (queued(None, 600), two_hours, 8_799, JoinVerdict::Until(at(8_800))),
            (queued(None, 600), two_hours, 8_800, JoinVerdict::Expired),
            (queued(None, i64::MAX), two_hours, 8_800, JoinVerdict::NoDeadline),
            (JoinAttempt { claimed: None, ..fresh }, two_hours, 900_000, JoinVerdict::NoDeadline),
            (JoinAttempt { joined: true, ..fresh }, two_hours, 900_000, JoinVerdict::NoDeadline),
            (JoinAttempt { deleting: true, ..fresh }, two_hours, 900_000, JoinVerdict::NoDeadline),
            (JoinAttempt { owned: false, ..fresh }, two_hours, 900_000, JoinVerdict::NoDeadline),
        ] {
            assert_eq!(judge(&attempt, timeout, at(now)), expected, "{attempt:?} {timeout:?} {now}");
        }
    }

    #[test]
    fn a_host_that_fails_again_and_again_is_quarantined() {
        for (failed, limit, expected) in [
            (1, FAILED_JOINS, HostFate::Pool),
            (2, FAILED_JOINS, HostFate::Pool),
            (3, FAILED_JOINS, HostFate::Quarantine),
            (4, FAILED_JOINS, HostFate::Quarantine),
            (1, 1, HostFate::Quarantine),
            (9, 0, HostFate::Pool),
        ] {
            assert_eq!(fate_of_host(failed, limit), expected, "{failed} of {limit}");
        }
    }
}
