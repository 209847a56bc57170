//! One host: observe in one round trip, compare, apply, observe again; and a fleet of them.
//!
//! What differs is decided by whoever implements [`Desired`]; here questions become one shell program and
//! its output becomes answers ([`observe`], [`facts`]), steps become shell programs and their output
//! becomes progress ([`apply`]), and [`host`] goes round until nothing differs.

pub mod apply;
mod conditions;
pub mod facts;
pub mod fleet;
mod frame;
mod headed;
pub mod host;
pub mod nonce;
pub mod observe;
pub mod plan;
mod process;
mod quote;
pub mod roster;
pub mod saved_plan;
mod second_part;
pub mod share;
mod stale;
pub mod states;
pub mod stop;
mod sysctl_path;
pub mod wait;

#[cfg(test)]
pub(crate) mod shells;

use crate::resource::contract::change::Verdict;
use crate::resource::contract::probe::{Observed, Probe};

/// One resource, as far as asking about it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// `kind:name`, unique within a host.
    pub id: String,
    /// What must be known to compare it.
    pub probes: Vec<Probe>,
}

/// What a host should be.
pub trait Desired: Sync {
    /// Every resource, in the order of execution.
    fn items(&self) -> Vec<Item>;

    /// What each resource needs, in the same order, under its id. Pure; `observed` holds an answer to every
    /// probe of [`Desired::items`].
    fn verdicts(&self, observed: &Observed) -> Vec<(String, Verdict)>;
}

impl<D: Desired + Send + ?Sized> Desired for std::sync::Arc<D> {
    fn items(&self) -> Vec<Item> {
        (**self).items()
    }

    fn verdicts(&self, observed: &Observed) -> Vec<(String, Verdict)> {
        (**self).verdicts(observed)
    }
}
