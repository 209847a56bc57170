//! How a run goes through a fleet: the options, and what they come to.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use clap::{Args, ValueEnum};

use crate::engine::cancel::Cancel;
use crate::engine::fleet::amount::{Amount, AmountError};
use crate::engine::fleet::schedule::Rules;
use crate::engine::host::EventSink;
use crate::engine::share::{Share, UPLOADS};
use crate::model::name::HostName;

/// Options of commands that change hosts.
#[derive(Debug, Args)]
pub struct FleetArguments {
    /// In batches of so many hosts (3, or 20% of them): the next one begins when all of the one before ended
    /// well
    #[arg(long, value_name = "N|P%", value_parser = batch)]
    serial: Option<Amount>,
    /// Begin no further host once more than so many (or such a share of all) have failed; any number, with
    /// --serial none
    #[arg(long, value_name = "N|P%")]
    max_failures: Option<Amount>,
    /// Whether a host that cannot be reached counts as failed
    #[arg(long, value_name = "HOW", default_value = "set-aside")]
    unreachable: Unreachable,
    /// Hosts that receive large content at the same time; the others wait for their turn
    #[arg(long, value_name = "N", default_value_t = UPLOADS)]
    uploads: NonZeroUsize,
}

/// What a host that cannot be reached is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Unreachable {
    /// Listed, and nobody's failure but its own.
    SetAside,
    /// Failed, as far as --serial and --max-failures go.
    Fail,
}

fn batch(text: &str) -> Result<Amount, AmountError> {
    text.parse().and_then(|amount| match amount {
        Amount::Hosts(0) | Amount::Percent(0) => Err(AmountError),
        amount => Ok(amount),
    })
}

/// How a run goes through its hosts, and who is told.
pub struct Conduct<'a> {
    /// Which host is next.
    pub rules: Rules,
    /// What its hosts share.
    pub share: Share,
    /// Who is told.
    pub events: EventSink<'a>,
    /// Of the hosts selected, only these.
    pub only: Option<BTreeSet<HostName>>,
}

impl FleetArguments {
    /// Of a run that can be stopped.
    pub fn conduct<'a>(&self, limit: NonZeroUsize, stop: &Cancel, events: EventSink<'a>) -> Conduct<'a> {
        let rules = Rules {
            limit,
            batch: self.serial,
            max_failures: self.max_failures,
            unreachable_fails: self.unreachable == Unreachable::Fail,
        };
        Conduct { rules, share: Share::new(stop.clone(), self.uploads), events, only: None }
    }
}

impl Conduct<'static> {
    /// Of a run that changes nothing: side by side, whatever becomes of single hosts.
    pub fn looking(limit: NonZeroUsize) -> Self {
        let share = Share::new(Cancel::never(), UPLOADS);
        Self { rules: Rules::side_by_side(limit), share, events: &|_| {}, only: None }
    }
}
