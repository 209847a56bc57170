//! The Lease on etcd's membership with its clock, as `metalform::kube_api::lease` has it: a holder renews it while it
//! runs and reaches the API, gives up after [`GIVE_UP`], and another may take it after [`EXPIRY`].

use std::time::Duration;

use metalform::kube_api::lease::{EXPIRY, GIVE_UP};
use tokio::time::Instant;

pub struct Lease {
    pub holder: String,
    /// When this holder took it.
    pub since: Instant,
    renewed: Instant,
    keeper: Keeper,
}

/// What renews it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeper {
    /// Renews it, but not before this.
    Renews(Instant),
    /// It could not be renewed in time: the holder has dropped its work.
    GaveUp,
    /// The process that held it is gone, or does not know that it has it.
    Gone,
}

impl Lease {
    pub fn taken(holder: &str, now: Instant) -> Self {
        Self { holder: holder.to_owned(), since: now, renewed: now, keeper: Keeper::Renews(now) }
    }

    /// Whether another process may take it.
    pub fn is_expired(&self, now: Instant) -> bool {
        now >= self.renewed + EXPIRY
    }

    /// How long ago it was renewed.
    pub fn age(&self, now: Instant) -> Duration {
        now - self.renewed
    }

    /// Whether its holder may act, as the holder knows by its own clock.
    pub fn is_kept(&self, by: &str, now: Instant) -> bool {
        self.holder == by && matches!(self.keeper, Keeper::Renews(_)) && now < self.renewed + GIVE_UP
    }

    /// Whether a process is there that renews it.
    pub fn has_keeper(&self) -> bool {
        matches!(self.keeper, Keeper::Renews(_))
    }

    /// Time has passed. `reached`: whether the API takes a renewal.
    pub fn pass(&mut self, now: Instant, reached: bool) {
        let Keeper::Renews(stalled_until) = self.keeper else { return };
        if now >= self.renewed + GIVE_UP {
            self.keeper = Keeper::GaveUp;
        } else if reached && now >= stalled_until {
            self.renewed = now;
        }
    }

    /// The process of its holder stands still.
    pub fn stall(&mut self, until: Instant) {
        if let Keeper::Renews(before) = &mut self.keeper {
            *before = until.max(*before);
        }
    }

    /// Nobody renews it any more.
    pub fn abandon(&mut self) {
        self.keeper = Keeper::Gone;
    }
}
