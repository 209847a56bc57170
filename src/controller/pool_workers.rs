//! The workers of this process: one job a host, in the background.
//!
//! # Guarantees
//! - Those of [`HostWorkers`].
//! - At most so many hosts are provisioned at the same time ([`PoolWorkers::new`]); the others wait in the order in which
//!   they were begun. Inspections, stops and resets do not wait for them.
//! - When it is dropped, every job is dropped too: nothing new is done on any host.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use jiff::Timestamp;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::host_workers::HostWorkers;
use super::job_performer::{JobContext, JobPerformer};
use crate::engine::cancel::{self, Cancel, CancelHandle, CancelLevel};
use crate::machine::api::host::HostObject;
use crate::machine::host_job::{HostJob, HostWork};
use crate::machine::job_order::JobOrder;
use crate::machine::job_outcome::{HostFindings, HostPresence, JobError, JobOutcome};
use crate::machine::job_queue::JobTurn;
use crate::model::name::HostName;

/// The phase of a job before its first.
const STARTING: &str = "starting";
/// The phase of a job that waits until another host is provisioned.
const WAITING: &str = "waiting for other hosts";
/// A phase is shown after this time, if the job is still in it: each one costs requests and writes of the objects.
const SHOWN_AFTER: Duration = Duration::from_millis(500);

/// Workers over one performer.
pub struct PoolWorkers {
    shared: Arc<Shared>,
    tasks: Mutex<JoinSet<()>>,
}

struct Shared {
    performer: Arc<dyn JobPerformer>,
    provisionings: Semaphore,
    clock: fn() -> Timestamp,
    /// Receives each host whose work or presence has changed.
    changed: UnboundedSender<HostName>,
    hosts: Mutex<Hosts>,
}

#[derive(Default)]
struct Hosts {
    jobs: BTreeMap<HostName, RunningJob>,
    probing: BTreeSet<HostName>,
    presences: BTreeMap<HostName, (HostPresence, Timestamp)>,
}

struct RunningJob {
    job: HostJob,
    turn: JobTurn,
    phase: String,
    handle: CancelHandle,
    outcome: Option<JobOutcome>,
}

impl PoolWorkers {
    /// With at most so many provisionings at the same time. `changed` receives each host whose work shows another phase, half
    /// a second after that began, or has ended, or that was probed.
    pub fn new(
        performer: Arc<dyn JobPerformer>,
        provisionings: NonZeroUsize,
        clock: fn() -> Timestamp,
        changed: UnboundedSender<HostName>,
    ) -> Self {
        let provisionings = Semaphore::new(provisionings.get());
        let shared = Shared { performer, provisionings, clock, changed, hosts: Mutex::default() };
        Self { shared: Arc::new(shared), tasks: Mutex::default() }
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }
}

impl HostWorkers for PoolWorkers {
    fn work(&self, host: &HostName) -> HostWork {
        match self.shared.hosts().jobs.get(host) {
            None => HostWork::Idle,
            Some(RunningJob { job, turn, phase, .. }) => {
                HostWork::Running { job: *job, token: turn.token, phase: phase.clone() }
            }
        }
    }

    fn begin(&self, order: JobOrder) {
        let (handle, cancel) = cancel::channel();
        let host = order.fence.host.clone();
        let (job, token) = (order.job, order.fence.token);
        {
            let mut hosts = self.shared.hosts();
            if hosts.jobs.contains_key(&host) {
                return;
            }
            let turn = JobTurn { token, since: (self.shared.clock)(), waits: false };
            let running = RunningJob { job, turn, phase: STARTING.to_owned(), handle, outcome: None };
            hosts.jobs.insert(host.clone(), running);
        }
        tracing::info!(%host, %job, token, "job begins");
        let shared = self.shared.clone();
        self.spawn(async move { shared.perform(order, cancel).await });
    }

    fn turn(&self, host: &HostName) -> Option<JobTurn> {
        Some(self.shared.hosts().jobs.get(host)?.turn)
    }

    fn cancel(&self, host: &HostName) {
        if let Some(running) = self.shared.hosts().jobs.get(host) {
            running.handle.cancel(CancelLevel::AfterResource);
        }
    }

    fn outcome(&self, host: &HostName) -> Option<JobOutcome> {
        self.shared.hosts().jobs.get(host)?.outcome.clone()
    }

    fn recorded(&self, outcome: &JobOutcome) {
        let host = &outcome.fence.host;
        let mut hosts = self.shared.hosts();
        if hosts.jobs.get(host).is_some_and(|running| running.outcome.as_ref() == Some(outcome)) {
            hosts.jobs.remove(host);
            drop(hosts);
            self.shared.changed(host);
        }
    }

    fn probe(&self, host: &Arc<HostObject>) {
        let Some(name) = host.metadata.name.as_ref().and_then(|name| name.parse::<HostName>().ok()) else {
            return;
        };
        if !self.shared.hosts().probing.insert(name.clone()) {
            return;
        }
        let (shared, host) = (self.shared.clone(), host.clone());
        self.spawn(async move {
            let probed = AssertUnwindSafe(shared.performer.probe(&host)).catch_unwind().await;
            let presence = probed.unwrap_or(HostPresence::Unknown);
            let mut hosts = shared.hosts();
            hosts.probing.remove(&name);
            hosts.presences.insert(name.clone(), (presence, (shared.clock)()));
            drop(hosts);
            shared.changed(&name);
        });
    }

    fn presence(&self, host: &HostName) -> Option<(HostPresence, Timestamp)> {
        self.shared.hosts().presences.get(host).copied()
    }
}

impl Shared {
    fn hosts(&self) -> MutexGuard<'_, Hosts> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The receiver is gone only when the process ends.
    fn changed(&self, host: &HostName) {
        let _ = self.changed.send(host.clone());
    }

    async fn show_phases(&self, host: &HostName, mut phases: watch::Receiver<String>) -> Infallible {
        while phases.changed().await.is_ok() {
            tokio::time::sleep(SHOWN_AFTER).await;
            let phase = phases.borrow_and_update().clone();
            if let Some(running) = self.hosts().jobs.get_mut(host) {
                running.phase = phase;
            }
            self.changed(host);
        }
        std::future::pending().await
    }

    async fn perform(&self, order: JobOrder, cancel: Cancel) {
        let host = &order.fence.host;
        let (phases, shown) = watch::channel(STARTING.to_owned());
        let work = AssertUnwindSafe(self.in_turn(&order, cancel, &phases)).catch_unwind();
        let panicked = |_| {
            let message = "the worker panicked, which is a bug of metalform".to_owned();
            Some(Err(JobError { message, presence: HostPresence::Unknown, begun: true }))
        };
        let result = tokio::select! {
            result = work => result.unwrap_or_else(panicked),
            never = self.show_phases(host, shown) => match never {},
        };
        let Some(result) = result else {
            tracing::info!(%host, job = %order.job, "job interrupted before its turn");
            self.hosts().jobs.remove(host);
            self.changed(host);
            return;
        };
        match &result {
            Ok(_) => tracing::info!(%host, job = %order.job, "job succeeded"),
            Err(error) => tracing::warn!(%host, job = %order.job, %error, "job failed"),
        }
        let (fence, ended) = (order.fence.clone(), (self.clock)());
        let outcome = JobOutcome { job: order.job, fence, ended, result };
        {
            let mut hosts = self.hosts();
            hosts.presences.insert(host.clone(), (outcome.presence(), ended));
            if let Some(running) = hosts.jobs.get_mut(host) {
                running.outcome = Some(outcome);
            }
        }
        self.changed(host);
    }

    /// `None`: it was interrupted before its turn.
    async fn in_turn(
        &self,
        order: &JobOrder,
        cancel: Cancel,
        phases: &watch::Sender<String>,
    ) -> Option<Result<HostFindings, JobError>> {
        let phase = |phase: &str| drop(phases.send_replace(phase.to_owned()));
        let _permit = if order.job.provisions() {
            let waits = self.provisionings.available_permits() == 0;
            if waits {
                self.set_turn(&order.fence.host, true);
                phase(WAITING);
            }
            let permit = tokio::select! {
                biased;
                () = cancel.reached(CancelLevel::AfterResource) => return None,
                permit = self.provisionings.acquire() => permit.ok(),
            };
            if waits {
                self.set_turn(&order.fence.host, false);
                self.changed(&order.fence.host);
            }
            permit
        } else {
            None
        };
        let context = JobContext { cancel, phase: &phase };
        Some(self.performer.perform(order, &context).await)
    }

    fn set_turn(&self, host: &HostName, waits: bool) {
        let since = (self.clock)();
        if let Some(running) = self.hosts().jobs.get_mut(host) {
            running.turn = JobTurn { since, waits, ..running.turn };
        }
    }
}

#[cfg(test)]
#[path = "pool_workers_tests.rs"]
mod tests;
