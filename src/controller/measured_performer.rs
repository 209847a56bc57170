//! Counts and times the jobs of another performer.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::time::Instant;

use super::controller_metrics::{ControllerMetrics, JobResult};
use super::job_performer::{JobContext, JobPerformer};
use crate::engine::cancel::CancelLevel;
use crate::machine::api::host::HostObject;
use crate::machine::host_job::HostJob;
use crate::machine::job_order::JobOrder;
use crate::machine::job_outcome::{HostFindings, HostPresence, JobError};

/// Over a performer. Each job is counted once, also one that panics or is dropped before its end.
pub struct MeasuredPerformer {
    /// Performs the jobs.
    pub performer: Arc<dyn JobPerformer>,
    /// Receives what became of them.
    pub metrics: Arc<ControllerMetrics>,
}

/// A job that has begun. It is counted when this is dropped.
struct JobRun<'a> {
    metrics: &'a ControllerMetrics,
    job: HostJob,
    began: Instant,
    result: Option<JobResult>,
}

#[async_trait]
impl JobPerformer for MeasuredPerformer {
    async fn perform(&self, order: &JobOrder, context: &JobContext<'_>) -> Result<HostFindings, JobError> {
        let mut run = JobRun { metrics: &self.metrics, job: order.job, began: Instant::now(), result: None };
        let performed = self.performer.perform(order, context).await;
        run.result = Some(match &performed {
            Ok(_) => JobResult::Success,
            Err(_) if context.cancel.level() > CancelLevel::Continue => JobResult::Interrupted,
            Err(_) => JobResult::Error,
        });
        performed
    }

    async fn probe(&self, host: &HostObject) -> HostPresence {
        self.performer.probe(host).await
    }
}

impl Drop for JobRun<'_> {
    fn drop(&mut self) {
        let unfinished = || if std::thread::panicking() { JobResult::Error } else { JobResult::Interrupted };
        let result = self.result.unwrap_or_else(unfinished);
        self.metrics.job_ended(self.job, result, self.began.elapsed());
    }
}
