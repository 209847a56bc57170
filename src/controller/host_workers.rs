//! The workers of this process on the hosts of the pool, as the passes over Machines and Hosts use them.

use std::sync::Arc;

use jiff::Timestamp;

use crate::machine::api::host::HostObject;
use crate::machine::host_job::HostWork;
use crate::machine::job_order::JobOrder;
use crate::machine::job_outcome::{HostPresence, JobOutcome};
use crate::machine::job_queue::JobTurn;
use crate::model::name::HostName;

/// Starts and interrupts jobs, and keeps their outcomes until they are recorded. No method waits.
///
/// # Guarantees that an implementation gives
/// - At most one job a host.
/// - A job whose outcome is not recorded is [`HostWork::Running`]: no other one begins before the Host shows what
///   became of it.
/// - A job that panics or is interrupted has an outcome, which is a failure; one that is interrupted before its turn
///   has none.
/// - Where [`HostWorkers::outcome`] returns an outcome, [`HostWorkers::presence`] is at least as new.
pub trait HostWorkers: Send + Sync {
    /// What is done on a host.
    fn work(&self, host: &HostName) -> HostWork;

    /// Starts a job in the background, unless one runs on that host or its outcome is not recorded. Where the number of
    /// jobs is limited, one that waits for its turn is [`HostWork::Running`] too.
    fn begin(&self, order: JobOrder);

    /// Whether the job on a host waits for its turn or has it, and since when.
    fn turn(&self, host: &HostName) -> Option<JobTurn>;

    /// Interrupts the job on a host. It runs until it has ended on the host too.
    fn cancel(&self, host: &HostName);

    /// The outcome of the last job on a host, until it is recorded.
    fn outcome(&self, host: &HostName) -> Option<JobOutcome>;

    /// The status of the Host contains this outcome, or is not to contain it: it is dropped, if it is still the last one.
    fn recorded(&self, outcome: &JobOutcome);

    /// Starts, in the background, to find out whether a host answers, unless that is being done.
    fn probe(&self, host: &Arc<HostObject>);

    /// What is last known of whether a host answers, from a probe or from the end of a job, and when. A process that gains
    /// the Lease begins without knowledge.
    fn presence(&self, host: &HostName) -> Option<(HostPresence, Timestamp)>;
}
