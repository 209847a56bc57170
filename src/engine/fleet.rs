//! Many hosts at once.

pub mod amount;
pub mod schedule;

use std::collections::BTreeMap;
use std::future::Future;
use std::num::NonZeroUsize;

use futures::StreamExt;
use futures::stream::FuturesUnordered;

use self::schedule::{Halt, HostEnd, Rules, Schedule, ScheduleStep};
use super::cancel::{Cancel, CancelLevel};
use super::host::HostError;
use crate::model::name::HostName;
use crate::transport::error::TransportError;

/// The default number of hosts that run at the same time: each has a connection, and holds the output of its program in
/// memory.
pub const LIMIT: NonZeroUsize = NonZeroUsize::new(32).expect("32 is not zero");

/// The result of each host, in the given order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetOutcome<T> {
    /// Hosts that were reached, and the results of their work.
    pub reached: Vec<(HostName, Result<T, HostError>)>,
    /// Hosts that were not reached.
    pub unreachable: Vec<(HostName, TransportError)>,
    /// Hosts that were not begun.
    pub not_begun: Vec<HostName>,
    /// Why they were not begun.
    pub halted: Option<Halt>,
}

/// Runs `work` for each host by the rules, until all are done or the run is cancelled. `succeeded` is whether work that
/// returned a result did succeed.
pub async fn run<T, F>(
    hosts: Vec<HostName>,
    rules: &Rules,
    cancel: &Cancel,
    work: impl Fn(HostName) -> F,
    succeeded: impl Fn(&T) -> bool,
) -> FleetOutcome<T>
where
    F: Future<Output = Result<T, HostError>>,
{
    let mut schedule = Schedule::new(rules, hosts.len());
    let mut running = FuturesUnordered::new();
    let mut results: BTreeMap<usize, Result<T, HostError>> = BTreeMap::new();
    let cancelled = cancel.reached(CancelLevel::AfterResource);
    tokio::pin!(cancelled);
    let mut stopped = false;
    loop {
        if cancel.level() >= CancelLevel::AfterResource {
            schedule.cancel();
        }
        match schedule.next() {
            ScheduleStep::Finished => break,
            ScheduleStep::Begin(at) => {
                schedule.begin();
                let done = work(hosts[at].clone());
                running.push(async move { (at, done.await) });
            }
            ScheduleStep::Wait => tokio::select! {
                Some((at, result)) = running.next() => {
                    schedule.end(end(&result, &succeeded));
                    results.insert(at, result);
                }
                () = &mut cancelled, if !stopped => stopped = true,
            },
        }
    }
    let mut outcome = FleetOutcome {
        reached: Vec::new(),
        unreachable: Vec::new(),
        not_begun: Vec::new(),
        halted: schedule.halted(),
    };
    for (at, host) in hosts.into_iter().enumerate() {
        match results.remove(&at) {
            None => outcome.not_begun.push(host),
            Some(Err(HostError::Transport(error @ TransportError::Unreachable { .. }))) => {
                outcome.unreachable.push((host, error));
            }
            Some(result) => outcome.reached.push((host, result)),
        }
    }
    outcome
}

fn end<T>(result: &Result<T, HostError>, succeeded: impl Fn(&T) -> bool) -> HostEnd {
    match result {
        Ok(done) if succeeded(done) => HostEnd::Succeeded,
        Err(HostError::Transport(TransportError::Unreachable { .. })) => HostEnd::Unreachable,
        Ok(_) | Err(_) => HostEnd::Failed,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::amount::Amount;
    use super::*;
    use crate::engine::cancel;

    fn hosts() -> Vec<HostName> {
        (0..9).map(|n| format!("node-{n}").parse().unwrap()).collect()
    }

    fn number(host: &HostName) -> usize {
        host.as_str()[5..].parse().unwrap()
    }

    #[tokio::test]
    async fn results_are_in_the_given_order_and_unreachable_hosts_apart() {
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let rules = Rules::side_by_side(NonZeroUsize::new(3).unwrap());
        let work = |host: HostName| {
            let (running, most) = (&running, &most);
            async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                // Later hosts end earlier.
                for _ in 0..(9 - number(&host)) {
                    tokio::task::yield_now().await;
                }
                running.fetch_sub(1, Ordering::SeqCst);
                if number(&host) == 4 {
                    let reason = "no route".to_owned();
                    return Err(TransportError::Unreachable { host: host.to_string(), reason }.into());
                }
                Ok(number(&host))
            }
        };
        let outcome = run(hosts(), &rules, &Cancel::never(), work, |_| true).await;
        assert_eq!(most.into_inner(), 3);
        let unreachable: Vec<&HostName> = outcome.unreachable.iter().map(|(host, _)| host).collect();
        assert_eq!(unreachable, [&hosts()[4]]);
        let numbers: Vec<usize> = outcome.reached.into_iter().map(|(_, number)| number.unwrap()).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 5, 6, 7, 8]);
        assert_eq!((outcome.not_begun, outcome.halted), (Vec::new(), None));
    }

    #[tokio::test]
    async fn no_batch_follows_one_that_failed() {
        let batches = Rules { batch: Some(Amount::Hosts(2)), ..Rules::side_by_side(LIMIT) };
        let work = |host: HostName| async move { Ok(number(&host)) };
        let outcome = run(hosts(), &batches, &Cancel::never(), work, |number| *number != 2).await;
        assert_eq!(outcome.reached.len(), 4);
        assert_eq!(outcome.not_begun, hosts()[4..]);
        assert_eq!(outcome.halted, Some(Halt::Failures { failed: 1, allowed: 0 }));
    }

    #[tokio::test]
    async fn running_hosts_finish_after_a_cancellation() {
        let (handle, cancel) = cancel::channel();
        let rules = Rules::side_by_side(NonZeroUsize::new(2).unwrap());
        let work = |host: HostName| {
            let handle = &handle;
            async move {
                if number(&host) == 1 {
                    handle.cancel(CancelLevel::AfterResource);
                }
                tokio::task::yield_now().await;
                Ok(())
            }
        };
        let outcome = run(hosts(), &rules, &cancel, work, |()| true).await;
        assert_eq!((outcome.reached.len(), outcome.not_begun.len()), (2, 7));
        assert_eq!(outcome.halted, Some(Halt::Cancelled));
    }
}
