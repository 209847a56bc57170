//! Options of commands that change hosts.

use std::num::NonZeroUsize;

use clap::{Args, ValueEnum};

use crate::engine::fleet::amount::{Amount, AmountError};
use crate::engine::share::UPLOADS;
use crate::service::fleet_options::FleetOptions;

/// How a run schedules its hosts.
#[derive(Debug, Args)]
pub struct FleetArguments {
    /// Work in batches of N hosts (or P% of them); a batch starts when the previous one has ended
    #[arg(long, value_name = "N|P%", value_parser = batch)]
    serial: Option<Amount>,
    /// Stop starting hosts after more than N (or P%) failures [default: no limit; 0 with --serial]
    #[arg(long, value_name = "N|P%")]
    max_failures: Option<Amount>,
    /// Whether unreachable hosts count as failures
    #[arg(long, value_name = "HOW", default_value = "set-aside")]
    unreachable: Unreachable,
    /// Hosts that receive large content at the same time
    #[arg(long, value_name = "N", default_value_t = UPLOADS)]
    uploads: NonZeroUsize,
}

/// What an unreachable host counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Unreachable {
    /// Reported, but not counted as a failure.
    SetAside,
    /// Counted as a failure by --serial and --max-failures.
    Fail,
}

fn batch(text: &str) -> Result<Amount, AmountError> {
    text.parse().and_then(|amount| match amount {
        Amount::Hosts(0) | Amount::Percent(0) => Err(AmountError),
        amount => Ok(amount),
    })
}

impl FleetArguments {
    /// The options of the run.
    pub fn options(&self) -> FleetOptions {
        FleetOptions {
            batch: self.serial,
            max_failures: self.max_failures,
            unreachable_fails: self.unreachable == Unreachable::Fail,
            uploads: self.uploads,
        }
    }
}
