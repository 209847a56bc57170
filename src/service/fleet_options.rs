//! How a run schedules the hosts of a fleet.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use super::command_context::CommandContext;
use crate::engine::fleet::amount::Amount;
use crate::engine::fleet::schedule::Rules;
use crate::engine::host::EventSink;
use crate::engine::share::{Share, UPLOADS};
use crate::model::name::HostName;

/// Options of a run that changes hosts.
#[derive(Debug, Clone)]
pub struct FleetOptions {
    /// Hosts in a batch; `None` is one batch of all hosts.
    pub batch: Option<Amount>,
    /// Failures after which no further host starts. `None` is no limit, and 0 with batches.
    pub max_failures: Option<Amount>,
    /// Whether an unreachable host counts as failed.
    pub unreachable_fails: bool,
    /// Hosts that receive large content at the same time.
    pub uploads: NonZeroUsize,
}

/// One run over a fleet.
pub struct FleetRun<'a> {
    /// Which host is next.
    pub rules: Rules,
    /// What the hosts of the run share.
    pub share: Share,
    /// Receives what happens.
    pub events: EventSink<'a>,
    /// Of the selected hosts, only these.
    pub only: Option<BTreeSet<HostName>>,
}

impl FleetOptions {
    /// A run that changes hosts, at most `limit` at the same time.
    pub fn run<'a>(&self, limit: NonZeroUsize, context: &CommandContext<'a>) -> FleetRun<'a> {
        let rules = Rules {
            limit,
            batch: self.batch,
            max_failures: self.max_failures,
            unreachable_fails: self.unreachable_fails,
        };
        let share = Share::new(context.cancel.clone(), self.uploads);
        FleetRun { rules, share, events: context.events, only: None }
    }
}

impl<'a> FleetRun<'a> {
    /// A run that changes nothing: at most `limit` hosts at the same time, regardless of failures.
    pub fn read_only(limit: NonZeroUsize, context: &CommandContext<'a>) -> Self {
        let share = Share::new(context.cancel.clone(), UPLOADS);
        Self { rules: Rules::side_by_side(limit), share, events: context.events, only: None }
    }
}
