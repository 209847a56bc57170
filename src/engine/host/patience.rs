//! How long a host may take to say what there is.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::{Duration, Instant, timeout_at};

use super::HostError;
use crate::resource::contract::probe::Probe;

/// For what every host is asked, seconds: a slow one over a slow line needs a hundredth of it, one that hangs
/// (a dead network file system, a disk that fails) has no end.
const BASE: u64 = 120;

/// A guard is a program of the operator's; it is ended after 30 s.
const GUARD: u64 = 31;

/// A limit that grows when more is asked.
pub(super) struct Patience(AtomicU64);

impl Patience {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(BASE))
    }

    /// What these questions may take is allowed too.
    pub(super) fn grow(&self, probes: &BTreeSet<Probe>) {
        let guards = probes.iter().filter(|probe| matches!(probe, Probe::Guard { .. })).count();
        self.0.fetch_add(GUARD * guards as u64, Ordering::Relaxed);
    }

    /// Waits for the answer.
    ///
    /// # Errors
    /// `Silent` when it does not come in time.
    pub(super) async fn wait_for<T>(&self, answer: impl Future<Output = T>) -> Result<T, HostError> {
        let began = Instant::now();
        tokio::pin!(answer);
        loop {
            let seconds = self.0.load(Ordering::Relaxed);
            match timeout_at(began + Duration::from_secs(seconds), &mut answer).await {
                Ok(answer) => return Ok(answer),
                // More was asked meanwhile.
                Err(_) if self.0.load(Ordering::Relaxed) > seconds => {}
                Err(_) => return Err(HostError::Silent { seconds }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_host_that_hangs_is_given_up_and_one_that_has_more_to_do_is_given_time() {
        let patience = Patience::new();
        let silent = patience.wait_for(std::future::pending::<()>()).await;
        assert_eq!(silent, Err(HostError::Silent { seconds: BASE }));
        let guard = |script: &str| Probe::Guard { script: script.to_owned() };
        let asked_later = async {
            tokio::time::sleep(Duration::from_secs(BASE - 1)).await;
            patience.grow(&BTreeSet::from([guard("a"), guard("b")]));
            tokio::time::sleep(Duration::from_secs(GUARD)).await;
            7
        };
        assert_eq!(patience.wait_for(asked_later).await, Ok(7));
    }
}
