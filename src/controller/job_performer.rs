//! What workers do on hosts, behind a trait: workers keep count of jobs, and performers perform them.

use async_trait::async_trait;

use crate::engine::cancel::Cancel;
use crate::machine::api::host::HostObject;
use crate::machine::job_order::JobOrder;
use crate::machine::job_outcome::{HostFindings, HostPresence, JobError};

/// What a job may use of its worker.
pub struct JobContext<'a> {
    /// First level: the present resource is finished, and nothing new is begun. Second: what runs is dropped.
    pub cancel: Cancel,
    /// Receives the title of each phase that begins.
    pub phase: &'a (dyn Fn(&str) + Sync),
}

/// Performs jobs.
#[async_trait]
pub trait JobPerformer: Send + Sync {
    /// Performs one job to its end. Once it has ended, no program of it runs on the host, unless the connection broke.
    ///
    /// # Errors
    /// When it did not succeed, or was cancelled.
    async fn perform(&self, order: &JobOrder, context: &JobContext<'_>) -> Result<HostFindings, JobError>;

    /// Whether a host answers. Changes nothing.
    async fn probe(&self, host: &HostObject) -> HostPresence;
}
