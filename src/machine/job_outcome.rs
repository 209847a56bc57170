//! What became of a job on a host.

use jiff::Timestamp;

use super::api::host_facts::HostFacts;
use super::host_job::{HostJob, JobFence};

/// A job that has ended. It is written into the status of its Host ([`super::host_record`]), once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobOutcome {
    /// Which one.
    pub job: HostJob,
    /// That it began with: an outcome under an earlier token is dropped.
    pub fence: JobFence,
    /// When it ended. Two failures of one job have different times, to the second.
    pub ended: Timestamp,
    /// What it found.
    pub result: Result<HostFindings, JobError>,
}

impl JobOutcome {
    /// Whether the host answered. A power hook does not ask the host.
    pub fn presence(&self) -> HostPresence {
        match (self.job, &self.result) {
            (HostJob::PowerOff, Ok(_)) => HostPresence::Off,
            (HostJob::PowerOff, Err(_)) => HostPresence::Silent,
            (_, Ok(_)) => HostPresence::Answers,
            (_, Err(error)) => error.presence,
        }
    }
}

/// What a job that succeeded has found on its host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostFindings {
    /// Of [`HostJob::Inspect`] and [`HostJob::Check`]; `None` leaves those that are recorded.
    pub facts: Option<HostFacts>,
    /// What a clean host does not have, of [`HostJob::Inspect`]; empty: it is clean. A check or a reset of a host that is
    /// not clean fails.
    pub residue: Vec<String>,
    /// The largest token that the host was given, of [`HostJob::Inspect`]: it refuses smaller ones, also those of a Host
    /// that was deleted and added again.
    pub largest_token: i64,
}

/// A job failed, or was interrupted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct JobError {
    /// With its causes, in one line.
    pub message: String,
    /// Whether the host answered.
    pub presence: HostPresence,
    /// False where another process works on the host: no program of the job has run, and it is no attempt.
    pub begun: bool,
}

/// Whether a host answers over SSH.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostPresence {
    /// It answers: what failed, failed on it.
    Answers,
    /// It does not answer, and may still run its node.
    Silent,
    /// It does not answer, and its power hook reports that it is off.
    Off,
    /// It was not tried, or what was tried shows neither: what is known of it stays.
    Unknown,
}
