//! How long a host may take for a program.

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::{Duration, Instant, timeout_at};

use super::HostError;
use crate::model::name::HostName;
use crate::resource::contract::probe::Probe;
use crate::resource::contract::step::Step;

/// Seconds that a guard may take: it is a command of the operator, which is ended after 30 s.
const GUARD: u64 = 31;

/// The limits of a session. A program that exceeds its limit is given up: its channel is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For collecting facts and for an observation; each guard adds 31 s.
    pub observe: Duration,
    /// For one resource, or one group of resources that are applied together; what a `wait` resource allows is
    /// added.
    pub apply: Duration,
}

impl Default for Limits {
    /// A slow host on a slow line needs a hundredth of them; one that hangs (a dead network file system, a failing
    /// disk) never finishes.
    fn default() -> Self {
        Self { observe: Duration::from_secs(120), apply: Duration::from_secs(3600) }
    }
}

/// What a program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// Collects facts or answers probes; changes nothing.
    Observe,
    /// Applies changes.
    Apply,
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Observe => "observing",
            Self::Apply => "applying changes to",
        })
    }
}

/// The deadline of one program, which can be extended while the program runs.
pub(super) struct Deadline<'a> {
    activity: Activity,
    host: &'a HostName,
    began: Instant,
    /// Milliseconds from `began`.
    end: AtomicU64,
    /// Milliseconds: what the error names.
    limit: AtomicU64,
}

impl<'a> Deadline<'a> {
    pub(super) fn new(activity: Activity, host: &'a HostName, limit: Duration) -> Self {
        let limit = milliseconds(limit);
        Self { activity, host, began: Instant::now(), end: limit.into(), limit: limit.into() }
    }

    /// Adds the time that guards may take.
    pub(super) fn allow_for_probes(&self, probes: &BTreeSet<Probe>) {
        let guards = probes.iter().filter(|probe| matches!(probe, Probe::Guard { .. })).count();
        self.extend(Duration::from_secs(GUARD * guards as u64));
    }

    /// Adds the time that waits may take.
    pub(super) fn allow_for_steps<'s>(&self, steps: impl IntoIterator<Item = &'s Step>) {
        let seconds = steps.into_iter().map(|step| match step {
            Step::Await { seconds, .. } => u64::from(*seconds),
            _ => 0,
        });
        self.extend(Duration::from_secs(seconds.sum()));
    }

    fn extend(&self, by: Duration) {
        self.end.fetch_add(milliseconds(by), Ordering::Relaxed);
        self.limit.fetch_add(milliseconds(by), Ordering::Relaxed);
    }

    /// The program made progress: the limit counts from now.
    pub(super) fn restart(&self) {
        let end = milliseconds(self.began.elapsed()) + self.limit.load(Ordering::Relaxed);
        self.end.store(end, Ordering::Relaxed);
    }

    /// The result of `work`.
    ///
    /// # Errors
    /// [`HostError::TimedOut`] when it does not finish in time; `work` is dropped then.
    pub(super) async fn enforce<T>(&self, work: impl Future<Output = T>) -> Result<T, HostError> {
        tokio::pin!(work);
        loop {
            let end = self.end.load(Ordering::Relaxed);
            match timeout_at(self.began + Duration::from_millis(end), &mut work).await {
                Ok(result) => return Ok(result),
                // Extended meanwhile.
                Err(_) if self.end.load(Ordering::Relaxed) > end => {}
                Err(_) => {
                    return Err(HostError::TimedOut {
                        activity: self.activity,
                        host: self.host.clone(),
                        limit: Duration::from_millis(self.limit.load(Ordering::Relaxed)),
                        resources: Vec::new(),
                    });
                }
            }
        }
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_program_that_hangs_is_given_up_and_guards_extend_the_deadline() {
        let host: HostName = "node-1".parse().unwrap();
        let limit = Duration::from_secs(120);
        let deadline = Deadline::new(Activity::Observe, &host, limit);
        let error = deadline.enforce(std::future::pending::<()>()).await.unwrap_err();
        assert_eq!(error.to_string(), "observing node-1 did not finish within 120 s");
        let guard = |script: &str| Probe::Guard { script: script.to_owned() };
        let deadline = Deadline::new(Activity::Observe, &host, limit);
        let extended = async {
            tokio::time::sleep(Duration::from_secs(119)).await;
            deadline.allow_for_probes(&BTreeSet::from([guard("a"), guard("b")]));
            tokio::time::sleep(Duration::from_secs(GUARD)).await;
            7
        };
        assert_eq!(deadline.enforce(extended).await, Ok(7));
    }

    #[tokio::test(start_paused = true)]
    async fn progress_restarts_the_deadline() {
        let host: HostName = "node-1".parse().unwrap();
        let deadline = Deadline::new(Activity::Apply, &host, Duration::from_secs(60));
        let work = async {
            for _ in 0..3 {
                tokio::time::sleep(Duration::from_secs(50)).await;
                deadline.restart();
            }
            std::future::pending::<()>().await;
        };
        let began = Instant::now();
        let error = deadline.enforce(work).await.unwrap_err();
        assert_eq!(error.to_string(), "applying changes to node-1 did not finish within 60 s");
        assert_eq!(began.elapsed().as_secs(), 210);
    }
}
