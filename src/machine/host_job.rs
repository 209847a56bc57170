//! The work of workers on a host of the pool, which may take minutes.
//!
//! A worker presents its [`JobFence`] to the host before each program of a job that changes the host. The host keeps the
//! largest token that it has been given and refuses smaller ones, so that the worker of a leader that lost its Lease cannot
//! undo a later reset. An inspection reads that token.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::name::HostName;

/// The pause after the first failure; it doubles with each further one.
const FIRST_PAUSE: SignedDuration = SignedDuration::from_secs(15);
/// The pause doubles so many times.
const DOUBLINGS: u32 = 5;

/// What a worker does on a host. Each job can be repeated, from any state that an interrupted one leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum HostJob {
    /// Reads the facts, and whether the host is clean. Changes nothing.
    Inspect,
    /// The preflight of `deploy-node`, and whether the host is clean. Changes nothing.
    Check,
    /// Upgrades the packages of the operating system and reboots where they require it.
    UpgradePackages,
    /// The phases of `deploy-node`, as far as they concern the host.
    Deploy,
    /// Restarts the kubelet, which then creates its Node again.
    RestartKubelet,
    /// Stops the kubelet and disables it, on a host that may be reset. Done means: it cannot run under this token or a
    /// smaller one.
    StopKubelet,
    /// Removes all that a node has on its host, and verifies that the host is clean.
    Reset,
    /// Calls the power hook of a host that does not answer: it confirms that the host is off, and switches it off first
    /// where it is on.
    PowerOff,
}

impl HostJob {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Inspect,
        Self::Check,
        Self::UpgradePackages,
        Self::Deploy,
        Self::RestartKubelet,
        Self::StopKubelet,
        Self::Reset,
        Self::PowerOff,
    ];

    /// Whether it makes a node of its host, and changes the host for it.
    pub fn provisions(self) -> bool {
        matches!(self, Self::UpgradePackages | Self::Deploy)
    }

    /// As in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inspect => "Inspect",
            Self::Check => "Check",
            Self::UpgradePackages => "UpgradePackages",
            Self::Deploy => "Deploy",
            Self::RestartKubelet => "RestartKubelet",
            Self::StopKubelet => "StopKubelet",
            Self::Reset => "Reset",
            Self::PowerOff => "PowerOff",
        }
    }
}

/// Who a worker works for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFence {
    /// The host.
    pub host: HostName,
    /// `metadata.uid` of the Machine in the claim of the host; `None` for a host without a claim.
    pub machine: Option<String>,
    /// `status.lastToken` of the Host.
    pub token: i64,
}

/// What the workers of this process do on a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostWork {
    /// Nothing.
    Idle,
    /// A job.
    Running {
        /// Which one.
        job: HostJob,
        /// The token that it began with.
        token: i64,
        /// The title of its present phase.
        phase: String,
    },
}

/// A job that failed and is repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFailure {
    /// Which one.
    pub job: HostJob,
    /// How many times in a row.
    pub attempts: u32,
    /// When it last failed.
    pub last: Timestamp,
    /// The error.
    pub message: String,
}

impl JobFailure {
    /// When the job begins again: after 15 s, 30 s, … 8 min.
    pub fn retry_at(&self) -> Timestamp {
        let doublings = self.attempts.saturating_sub(1).min(DOUBLINGS);
        self.last.checked_add(FIRST_PAUSE.saturating_mul(1 << doublings)).unwrap_or(Timestamp::MAX)
    }
}

impl fmt::Display for HostJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inspect => "inspection",
            Self::Check => "preflight check",
            Self::UpgradePackages => "upgrade of packages",
            Self::Deploy => "deployment",
            Self::RestartKubelet => "restart of the kubelet",
            Self::StopKubelet => "stop of the kubelet",
            Self::Reset => "reset",
            Self::PowerOff => "power-off",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_eight_minutes() {
        let last = Timestamp::from_second(1_000).unwrap();
        for (attempts, seconds) in [(0, 15), (1, 15), (2, 30), (3, 60), (6, 480), (7, 480), (u32::MAX, 480)] {
            let failure = JobFailure { job: HostJob::Reset, attempts, last, message: String::new() };
            assert_eq!(failure.retry_at().duration_since(last).as_secs(), seconds, "{attempts}");
        }
        let failure =
            JobFailure { job: HostJob::Reset, attempts: 1, last: Timestamp::MAX, message: String::new() };
        assert_eq!(failure.retry_at(), Timestamp::MAX);
    }
}
