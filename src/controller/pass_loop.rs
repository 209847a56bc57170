//! Passes over objects as they become due, several at a time.

use std::future::pending;
use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::FuturesUnordered;
use futures::{Stream, StreamExt};
use jiff::{SignedDuration, Timestamp};
use tokio::time::sleep;

use super::machine_pass::{MachinePassError, NextPass};
use super::pass_key::PassKey;
use super::pass_queue::{PassEnd, PassQueue};
use crate::model::error_chain::error_chain;

/// By less than this a clock may be set back without effect: timers are late by no more.
const SET_BACK: SignedDuration = SignedDuration::from_secs(1);

/// Passes over objects of all kinds.
#[async_trait]
pub trait Passes: Send + Sync {
    /// One pass over an object, and when the next one is due; [`NextPass::OnChange`] for one that does not exist.
    ///
    /// # Errors
    /// When it is to be tried again after a pause.
    async fn pass(&self, key: &PassKey) -> Result<NextPass, MachinePassError>;
}

/// Passes over what becomes due, at most so many at the same time, until `due` ends. Whatever is in progress is dropped
/// with the loop. What waits is in `queue`, which nothing else changes.
pub async fn run(
    passes: &dyn Passes,
    mut due: impl Stream<Item = Vec<PassKey>> + Unpin,
    queue: &Mutex<PassQueue>,
    limit: NonZeroUsize,
    clock: fn() -> Timestamp,
) {
    let mut running = FuturesUnordered::new();
    let mut last = clock();
    loop {
        let now = clock();
        if last.duration_since(now) > SET_BACK {
            tracing::warn!("the clock was set back from {last} to {now}: all passes are due");
            lock(queue).set_back(now);
        }
        last = now;
        while running.len() < limit.get()
            && let Some(key) = lock(queue).take(clock())
        {
            running.push(async move {
                let ended = passes.pass(&key).await;
                (key, ended)
            });
        }
        let wake = if running.len() < limit.get() { lock(queue).next_due() } else { None };
        tokio::select! {
            woken = due.next() => {
                let Some(woken) = woken else { return };
                let mut queue = lock(queue);
                woken.into_iter().for_each(|key| queue.add(key, clock()));
            }
            Some((key, ended)) = running.next(), if !running.is_empty() => {
                lock(queue).end(&key, end(&key, ended), clock());
            }
            () = until(wake, clock) => {}
        }
    }
}

fn lock(queue: &Mutex<PassQueue>) -> MutexGuard<'_, PassQueue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

fn end(key: &PassKey, ended: Result<NextPass, MachinePassError>) -> PassEnd {
    match ended {
        Ok(next) => PassEnd::Done(next),
        Err(error) => {
            tracing::warn!("{key}: {}", error_chain(&error));
            PassEnd::Failed
        }
    }
}

/// Waits for a time of the clock; for ever without one.
async fn until(due: Option<Timestamp>, clock: fn() -> Timestamp) {
    let Some(due) = due else { return pending().await };
    // At least 1 ms, so that a clock that is set back does not make this spin.
    let left = Duration::try_from(due.duration_since(clock())).unwrap_or_default();
    sleep(left.max(Duration::from_millis(1))).await;
}
