//! Decides which host is next. A value: events go in, decisions come out, and it has no effects.
//!
//! # Guarantees
//! - A host begins at most once, in the given order, and never more run at the same time than the limit.
//! - A batch begins only when every host of the one before has ended.
//! - Once more hosts have failed than allowed, or the run is cancelled, no further host begins; running ones finish.

use std::num::NonZeroUsize;

use super::amount::Amount;

/// The rules of a run over a fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Hosts at the same time.
    pub limit: NonZeroUsize,
    /// Hosts in a batch, at least one; `None` is all in one.
    pub batch: Option<Amount>,
    /// Hosts that may fail, of all; `None` is any number, but none with batches.
    pub max_failures: Option<Amount>,
    /// Whether an unreachable host counts as failed; otherwise it is only reported.
    pub unreachable_fails: bool,
}

impl Rules {
    /// All hosts side by side, with any number of failures.
    pub fn side_by_side(limit: NonZeroUsize) -> Self {
        Self { limit, batch: None, max_failures: None, unreachable_fails: false }
    }
}

/// How the work on a host ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostEnd {
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed,
    /// The host was not reached.
    Unreachable,
}

/// The decision of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduleStep {
    /// Begin the host at this index.
    Begin(usize),
    /// Wait until a host ends.
    Wait,
    /// The run is over.
    Finished,
}

/// Why no further host begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Halt {
    /// The run was cancelled.
    #[error("the run was interrupted")]
    Cancelled,
    /// Too many failed.
    #[error("{failed} failed, more than --max-failures={allowed} allows")]
    Failures {
        /// The number of failed hosts.
        failed: usize,
        /// The number of hosts that may fail.
        allowed: usize,
    },
}

/// The state of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    total: usize,
    limit: usize,
    batch: usize,
    allowed: usize,
    unreachable_fails: bool,
    begun: usize,
    ended: usize,
    failed: usize,
    cancelled: bool,
}

impl Schedule {
    /// Before the first of `total` hosts.
    pub fn new(rules: &Rules, total: usize) -> Self {
        let batch = rules.batch.map_or(total, |amount| amount.of(total));
        let allowed = match (rules.max_failures, rules.batch) {
            (Some(amount), _) => amount.of(total),
            (None, Some(_)) => 0,
            (None, None) => total,
        };
        Self {
            total,
            limit: rules.limit.get(),
            // At least one host, also for a small share of few hosts: an empty batch would never end.
            batch: batch.max(1),
            allowed,
            unreachable_fails: rules.unreachable_fails,
            begun: 0,
            ended: 0,
            failed: 0,
            cancelled: false,
        }
    }

    /// The next decision.
    pub fn next(&self) -> ScheduleStep {
        let running = self.begun - self.ended;
        let between_batches = self.begun.is_multiple_of(self.batch);
        if self.begun == self.total || self.halted().is_some() {
            if running == 0 { ScheduleStep::Finished } else { ScheduleStep::Wait }
        } else if running >= self.limit || (between_batches && running > 0) {
            ScheduleStep::Wait
        } else {
            ScheduleStep::Begin(self.begun)
        }
    }

    /// Why no further host begins; `None` while hosts may begin.
    pub fn halted(&self) -> Option<Halt> {
        if self.cancelled {
            Some(Halt::Cancelled)
        } else if self.failed > self.allowed {
            Some(Halt::Failures { failed: self.failed, allowed: self.allowed })
        } else {
            None
        }
    }

    /// Records that the next host has begun.
    pub fn begin(&mut self) {
        self.begun += 1;
    }

    /// Records that a running host has ended.
    pub fn end(&mut self, end: HostEnd) {
        self.ended += 1;
        let failed = match end {
            HostEnd::Succeeded => false,
            HostEnd::Failed => true,
            HostEnd::Unreachable => self.unreachable_fails,
        };
        self.failed += usize::from(failed);
    }

    /// No further host begins.
    pub fn cancel(&mut self) {
        self.cancelled = true;
    }
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
