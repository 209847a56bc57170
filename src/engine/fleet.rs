//! Many hosts at once.

use std::future::Future;

use futures::StreamExt;

use super::host::HostError;
use crate::model::name::HostName;
use crate::transport::error::TransportError;

/// As many hosts as are worked on at the same time where nothing else is said: each has a connection and
/// holds what its program prints.
pub const LIMIT: usize = 32;

/// What became of each host, in the order in which they were given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetOutcome<T> {
    /// Hosts that could be reached, and what their work gave.
    pub reached: Vec<(HostName, Result<T, HostError>)>,
    /// Hosts that could not; they are nobody's failure but theirs.
    pub unreachable: Vec<(HostName, TransportError)>,
}

/// Runs `work` for each host, at most `limit` (at least one) at a time. A host that fails or cannot be
/// reached holds up no other.
pub async fn run<T, F>(hosts: Vec<HostName>, limit: usize, work: impl Fn(HostName) -> F) -> FleetOutcome<T>
where
    F: Future<Output = Result<T, HostError>>,
{
    let mut results: Vec<(usize, HostName, Result<T, HostError>)> =
        futures::stream::iter(hosts.into_iter().enumerate())
            .map(|(at, host)| {
                let done = work(host.clone());
                async move { (at, host, done.await) }
            })
            .buffer_unordered(limit.max(1))
            .collect()
            .await;
    results.sort_by_key(|(at, ..)| *at);
    let mut outcome = FleetOutcome { reached: Vec::new(), unreachable: Vec::new() };
    for (_, host, result) in results {
        match result {
            Err(HostError::Transport(error @ TransportError::Unreachable { .. })) => {
                outcome.unreachable.push((host, error));
            }
            result => outcome.reached.push((host, result)),
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn hosts_come_back_in_their_order_and_the_unreachable_ones_apart() {
        let hosts: Vec<HostName> = (0..9).map(|n| format!("node-{n}").parse().unwrap()).collect();
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let outcome = run(hosts.clone(), 3, |host| {
            let (running, most) = (&running, &most);
            async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                // Later hosts end earlier.
                let number: usize = host.as_str()[5..].parse().unwrap();
                for _ in 0..(9 - number) {
                    tokio::task::yield_now().await;
                }
                running.fetch_sub(1, Ordering::SeqCst);
                if number == 4 {
                    let reason = "no route".to_owned();
                    return Err(TransportError::Unreachable { host: host.to_string(), reason }.into());
                }
                Ok(number)
            }
        })
        .await;
        assert_eq!(most.into_inner(), 3);
        let unreachable: Vec<&HostName> = outcome.unreachable.iter().map(|(host, _)| host).collect();
        assert_eq!(unreachable, [&hosts[4]]);
        let numbers: Vec<usize> = outcome.reached.into_iter().map(|(_, number)| number.unwrap()).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 5, 6, 7, 8]);
    }
}
