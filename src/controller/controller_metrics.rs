//! What the machine controllers report to Prometheus.
//!
//! # Guarantees
//! - The names of metrics and labels are those of https://prometheus.io/docs/practices/naming. A label has a value of a list
//!   that is known when this is compiled: none names an object.
//! - Counters and histograms exist from the start, with 0, and are kept when the process loses the Lease.
//! - The pool is counted at each scrape, and only by the process that has the Lease.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use prometheus_client::encoding::prometheus_text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use super::pass_key::PassKey;
use super::pool_collector::{LeaderView, PoolCollector};
use crate::machine::host_job::HostJob;

/// The first part of every name.
const PREFIX: &str = "metalform";

/// Upper bounds of the durations of passes, in seconds. A pass is some requests long.
const PASS_SECONDS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];
/// Upper bounds of the durations of jobs, in seconds: from a question over SSH to a deployment on a slow host.
const JOB_SECONDS: [f64; 10] = [1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 3600.0];
/// Upper bounds of the times to Ready, in seconds. After two hours a Machine that has not joined is replaced.
const READY_SECONDS: [f64; 10] = [30.0, 60.0, 120.0, 180.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0];

type One = [(&'static str, &'static str); 1];
type Two = [(&'static str, &'static str); 2];

/// What a pass has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassResult {
    /// It did all that was due.
    Success,
    /// An object had changed since it was read: the pass is repeated.
    Conflict,
    /// It failed.
    Error,
}

/// What a job on a host has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobResult {
    /// It succeeded.
    Success,
    /// It failed.
    Error,
    /// It was cancelled, or dropped with the Lease.
    Interrupted,
}

/// The metrics of one process.
#[derive(Debug)]
pub struct ControllerMetrics {
    registry: Registry,
    reconciles: Family<Two, Counter>,
    reconcile_seconds: Family<One, Histogram>,
    jobs: Family<Two, Counter>,
    job_seconds: Family<One, Histogram>,
    ready_seconds: Histogram,
    leader: Gauge,
    transitions: Family<One, Counter>,
    pool: Arc<PoolCollector>,
}

/// While it exists, this process has the Lease.
#[derive(Debug)]
pub struct Leading(Arc<ControllerMetrics>);

impl ControllerMetrics {
    /// Of a process that does not have the Lease yet.
    pub fn new(clock: fn() -> Timestamp) -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix(PREFIX),
            reconciles: Family::default(),
            reconcile_seconds: Family::new_with_constructor(|| Histogram::new(PASS_SECONDS)),
            jobs: Family::default(),
            job_seconds: Family::new_with_constructor(|| Histogram::new(JOB_SECONDS)),
            ready_seconds: Histogram::new(READY_SECONDS),
            leader: Gauge::default(),
            transitions: Family::default(),
            pool: Arc::new(PoolCollector::new(clock)),
        };
        metrics.begin_with_zero();
        metrics.register();
        metrics
    }

    /// A rate is defined from the first failure on only where the counter was there before it.
    fn begin_with_zero(&self) {
        for controller in PassKey::KINDS {
            for result in [PassResult::Success, PassResult::Conflict, PassResult::Error] {
                drop(self.reconciles.get_or_create(&pass_labels(controller, result)));
            }
            drop(self.reconcile_seconds.get_or_create(&[("controller", controller)]));
        }
        for job in HostJob::ALL {
            for result in [JobResult::Success, JobResult::Error, JobResult::Interrupted] {
                drop(self.jobs.get_or_create(&job_labels(job, result)));
            }
            drop(self.job_seconds.get_or_create(&[("kind", job.name())]));
        }
        for to in ["leader", "standby"] {
            drop(self.transitions.get_or_create(&[("to", to)]));
        }
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "Version of metalform", build);
        registry.register(
            "leader",
            "1 if this process has the Lease of the machine controllers",
            self.leader.clone(),
        );
        registry.register(
            "lease_transitions",
            "How often this process gained and lost the Lease",
            self.transitions.clone(),
        );
        registry.register("reconciles", "Passes over one object that ended", self.reconciles.clone());
        registry.register(
            "reconcile_duration_seconds",
            "Duration of passes over one object",
            self.reconcile_seconds.clone(),
        );
        registry.register("host_jobs", "Jobs on hosts that ended", self.jobs.clone());
        registry.register(
            "host_job_duration_seconds",
            "Duration of jobs on hosts, without the time that they waited for their turn",
            self.job_seconds.clone(),
        );
        registry.register(
            "machine_creation_to_ready_seconds",
            "Time from the creation of a Machine until its Node was Ready for the first time",
            self.ready_seconds.clone(),
        );
        registry.register_collector(Box::new(self.pool.clone()));
    }

    /// All of them, in [`prometheus_text::CONTENT_TYPE`].
    pub fn text(&self) -> String {
        let mut text = String::new();
        if let Err(error) = prometheus_text::encode(&mut text, &self.registry) {
            tracing::error!(%error, "metrics");
        }
        text
    }

    /// A pass over an object has ended.
    pub fn reconciled(&self, key: &PassKey, result: PassResult, duration: Duration) {
        self.reconciles.get_or_create(&pass_labels(key.kind(), result)).inc();
        self.reconcile_seconds.get_or_create(&[("controller", key.kind())]).observe(duration.as_secs_f64());
    }

    /// A job on a host has ended.
    pub fn job_ended(&self, job: HostJob, result: JobResult, duration: Duration) {
        self.jobs.get_or_create(&job_labels(job, result)).inc();
        self.job_seconds.get_or_create(&[("kind", job.name())]).observe(duration.as_secs_f64());
    }

    /// A Machine is Ready for the first time, so long after its creation.
    pub fn machine_ready(&self, after: SignedDuration) {
        self.ready_seconds.observe(after.as_secs_f64());
    }

    /// This process has gained the Lease, and sees this.
    pub fn lead(self: &Arc<Self>, view: LeaderView) -> Leading {
        self.pool.set(Some(view));
        self.leader.set(1);
        self.transitions.get_or_create(&[("to", "leader")]).inc();
        Leading(self.clone())
    }
}

impl Drop for Leading {
    fn drop(&mut self) {
        self.0.pool.set(None);
        self.0.leader.set(0);
        self.0.transitions.get_or_create(&[("to", "standby")]).inc();
    }
}

fn pass_labels(controller: &'static str, result: PassResult) -> Two {
    let result = match result {
        PassResult::Success => "success",
        PassResult::Conflict => "conflict",
        PassResult::Error => "error",
    };
    [("controller", controller), ("result", result)]
}

/// Not `job`, which Prometheus sets itself.
fn job_labels(job: HostJob, result: JobResult) -> Two {
    let result = match result {
        JobResult::Success => "success",
        JobResult::Error => "error",
        JobResult::Interrupted => "interrupted",
    };
    [("kind", job.name()), ("result", result)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(metrics: &ControllerMetrics, lines: &[&str]) {
        let text = metrics.text();
        for line in lines {
            assert!(text.lines().any(|one| one == *line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn what_ended_is_counted_and_what_has_not_is_zero() {
        let metrics = ControllerMetrics::new(|| Timestamp::UNIX_EPOCH);
        let host = PassKey::Host("h".to_owned());
        for (result, milliseconds) in
            [(PassResult::Success, 2), (PassResult::Success, 300), (PassResult::Error, 20_000)]
        {
            metrics.reconciled(&host, result, Duration::from_millis(milliseconds));
        }
        metrics.job_ended(HostJob::Deploy, JobResult::Interrupted, Duration::from_secs(90));
        metrics.machine_ready(SignedDuration::from_secs(150));
        has(
            &metrics,
            &[
                concat!("metalform_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
                "metalform_leader 0",
                "metalform_lease_transitions_total{to=\"leader\"} 0",
                "# TYPE metalform_reconciles_total counter",
                "metalform_reconciles_total{controller=\"host\",result=\"success\"} 2",
                "metalform_reconciles_total{controller=\"host\",result=\"error\"} 1",
                "metalform_reconciles_total{controller=\"machine\",result=\"error\"} 0",
                "# TYPE metalform_reconcile_duration_seconds histogram",
                "metalform_reconcile_duration_seconds_bucket{controller=\"host\",le=\"0.0025\"} 1",
                "metalform_reconcile_duration_seconds_bucket{controller=\"host\",le=\"0.5\"} 2",
                "metalform_reconcile_duration_seconds_bucket{controller=\"host\",le=\"+Inf\"} 3",
                "metalform_host_jobs_total{kind=\"Deploy\",result=\"interrupted\"} 1",
                "metalform_host_jobs_total{kind=\"Reset\",result=\"error\"} 0",
                "metalform_host_job_duration_seconds_sum{kind=\"Deploy\"} 90.0",
                "metalform_machine_creation_to_ready_seconds_bucket{le=\"120\"} 0",
                "metalform_machine_creation_to_ready_seconds_bucket{le=\"180\"} 1",
            ],
        );
    }

    #[test]
    fn no_label_is_one_that_prometheus_sets() {
        let text = ControllerMetrics::new(|| Timestamp::UNIX_EPOCH).text();
        for reserved in ["job=", "instance="] {
            assert!(
                !text.contains(&format!("{{{reserved}")) && !text.contains(&format!(",{reserved}")),
                "{text}"
            );
        }
    }
}
