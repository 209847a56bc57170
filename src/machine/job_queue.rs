//! Jobs that wait until other hosts are provisioned: that time is not the host's, nor that of its Machine.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::api::host_queue::HostQueue;
use super::api::host_status::HostStatus;
use super::condition::whole_seconds;

/// The time that a claim has waited for the turn of its jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JobQueue {
    /// Since when a job waits; `None`: none does.
    pub since: Option<Timestamp>,
    /// How long jobs have waited before.
    pub waited: SignedDuration,
}

/// The turn of the job that workers of this process have for a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobTurn {
    /// That the job began with.
    pub token: i64,
    /// Since when it waits for its turn, or has it.
    pub since: Timestamp,
    /// It waits.
    pub waits: bool,
}

/// The queue of a status, with the turn of the job under its last token. A wait that an earlier process has recorded
/// goes on with that of this one, and ends where no job waits.
pub fn recorded(status: &HostStatus, turn: Option<JobTurn>, now: Timestamp) -> Option<HostQueue> {
    let turn = turn.filter(|turn| turn.token == status.last_token);
    let queue = status.job_queue.clone();
    let begun = queue.as_ref().and_then(|queue| queue.since.as_ref()).map(|since| since.0);
    match (begun, turn) {
        (None, Some(JobTurn { waits: true, since, .. })) => {
            Some(HostQueue { since: Some(Time(whole_seconds(since))), ..queue.unwrap_or_default() })
        }
        (None, _) | (Some(_), Some(JobTurn { waits: true, .. })) => queue,
        (Some(begun), turn) => {
            let ended = turn.map_or(now, |turn| turn.since);
            let waited = ended.duration_since(begun).as_secs().max(0);
            let before = queue.map_or(0, |queue| queue.waited_seconds);
            Some(HostQueue { since: None, waited_seconds: before.saturating_add(waited) })
        }
    }
}

impl From<&HostQueue> for JobQueue {
    fn from(queue: &HostQueue) -> Self {
        let since = queue.since.as_ref().map(|since| since.0);
        Self { since, waited: SignedDuration::from_secs(queue.waited_seconds) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_time_until_the_turn_is_added_up() {
        let queue = |since: Option<i64>, waited_seconds| {
            Some(HostQueue { since: since.map(|second| Time(at(second))), waited_seconds })
        };
        let waits = |second| Some(JobTurn { token: 3, since: at(second), waits: true });
        let has = |second| Some(JobTurn { token: 3, since: at(second), waits: false });
        for (before, turn, expected) in [
            (None, None, None),
            (None, has(50), None),
            (None, waits(50), queue(Some(50), 0)),
            (queue(Some(50), 0), waits(50), queue(Some(50), 0)),
            (queue(Some(50), 0), has(80), queue(None, 30)),
            (queue(None, 30), has(80), queue(None, 30)),
            (queue(None, 30), None, queue(None, 30)),
            // The next job, or the same one once more.
            (queue(None, 30), waits(90), queue(Some(90), 30)),
            (queue(Some(90), 30), has(95), queue(None, 35)),
            // Another process has the Lease: its job waits too, has its turn, or has yet to begin.
            (queue(Some(50), 0), waits(95), queue(Some(50), 0)),
            (queue(Some(50), 5), has(95), queue(None, 50)),
            (queue(Some(50), 5), None, queue(None, 55)),
            // A clock that was set back.
            (queue(Some(50), 5), has(10), queue(None, 5)),
            // A job of an earlier claim.
            (None, Some(JobTurn { token: 2, since: at(50), waits: true }), None),
        ] {
            let status = HostStatus { last_token: 3, job_queue: before.clone(), ..HostStatus::default() };
            assert_eq!(recorded(&status, turn, at(100)), expected, "{before:?} {turn:?}");
        }
    }
}
