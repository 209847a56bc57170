//! Which host is next. A value that is told what happened and says what to do; it does nothing itself.
//!
//! # Guarantees
//! - A host begins at most once, in the order given, and never more at the same time than the limit.
//! - A batch begins only when every host of the one before has ended.
//! - Once more hosts have failed than may, or a stop was asked for, no further host begins; those under way
//!   end.

use std::num::NonZeroUsize;

use super::amount::Amount;

/// How a fleet is gone through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Hosts at the same time.
    pub limit: NonZeroUsize,
    /// Hosts in a batch, at least one; `None` is all in one.
    pub batch: Option<Amount>,
    /// Hosts that may fail, of all; `None` is any number, but with batches it is none.
    pub max_failures: Option<Amount>,
    /// Whether a host that cannot be reached has failed; otherwise it is set aside, and counts for nothing.
    pub unreachable_fails: bool,
}

impl Rules {
    /// All hosts side by side, whatever becomes of them.
    pub fn side_by_side(limit: NonZeroUsize) -> Self {
        Self { limit, batch: None, max_failures: None, unreachable_fails: false }
    }
}

/// How the work on a host ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It is what it should be.
    Well,
    /// It is not.
    Failed,
    /// It was never reached.
    Unreachable,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Begin with the host of this number.
    Begin(usize),
    /// Wait until a host ends.
    Wait,
    /// Nothing more will happen.
    Over,
}

/// Why no further host begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Halt {
    /// Somebody asked for it.
    #[error("the run was interrupted")]
    Asked,
    /// Too many failed.
    #[error("{failed} failed, where {allowed} may (--max-failures)")]
    Failures {
        /// Hosts that have.
        failed: usize,
        /// Hosts that may.
        allowed: usize,
    },
}

/// Where a run stands.
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
    asked: bool,
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
            // A small share of few hosts is still one: a run without any would never end.
            batch: batch.max(1),
            allowed,
            unreachable_fails: rules.unreachable_fails,
            begun: 0,
            ended: 0,
            failed: 0,
            asked: false,
        }
    }

    /// What to do now.
    pub fn next(&self) -> Next {
        let running = self.begun - self.ended;
        let between_batches = self.begun.is_multiple_of(self.batch);
        if self.begun == self.total || self.halted().is_some() {
            if running == 0 { Next::Over } else { Next::Wait }
        } else if running >= self.limit || (between_batches && running > 0) {
            Next::Wait
        } else {
            Next::Begin(self.begun)
        }
    }

    /// Why no further host begins, once that is so.
    pub fn halted(&self) -> Option<Halt> {
        if self.asked {
            Some(Halt::Asked)
        } else if self.failed > self.allowed {
            Some(Halt::Failures { failed: self.failed, allowed: self.allowed })
        } else {
            None
        }
    }

    /// The host that was next has begun.
    pub fn begin(&mut self) {
        self.begun += 1;
    }

    /// A host that had begun has ended.
    pub fn end(&mut self, end: End) {
        self.ended += 1;
        let failed = match end {
            End::Well => false,
            End::Failed => true,
            End::Unreachable => self.unreachable_fails,
        };
        self.failed += usize::from(failed);
    }

    /// No further host shall begin.
    pub fn stop(&mut self) {
        self.asked = true;
    }
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
