//! One host: observe in one round trip, compare, apply, observe again; and a fleet of them.
//!
//! The implementation of [`Desired`] decides what differs. Here probes become one shell program and its output becomes
//! answers ([`observe`], [`facts`]), steps become shell programs and their output becomes progress ([`apply`]), and
//! [`host`] repeats that until nothing differs.

pub mod apply;
pub mod backoff;
pub mod cancel;
mod conditions;
pub mod facts;
pub mod fenced_transport;
pub mod fleet;
mod frame;
mod head_v;
mod hidden_script;
pub mod host;
pub mod nonce;
pub mod observe;
mod owed;
pub mod plan;
mod process;
pub mod roster;
pub mod saved_plan;
pub mod share;
mod stale;
pub mod states;

mod sysctl_path;
mod two_stage;
pub mod wait;

#[cfg(test)]
mod owed_tests;
#[cfg(test)]
pub(crate) mod shells;

use crate::resource::contract::change::Verdict;
use crate::resource::contract::owed::Owed;
use crate::resource::contract::probe::{Observed, Probe};

/// A resource and its probes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// `kind:name`, unique within a host.
    pub id: String,
    /// What is required to compare it.
    pub probes: Vec<Probe>,
}

/// The desired state of a host.
pub trait Desired: Sync {
    /// Every resource, in the order of execution.
    fn items(&self) -> Vec<Item>;

    /// The verdict on each resource, by id, in the same order. Pure; `observed` contains an answer to every probe of
    /// [`Desired::items`].
    fn verdicts(&self, observed: &Observed) -> Vec<(String, Verdict)>;

    /// Which resources react to the change of which. [`Desired::items`] contains a [`Probe::Owed`] for each.
    fn reactions(&self) -> Vec<Owed> {
        Vec::new()
    }
}

impl<D: Desired + Send + ?Sized> Desired for std::sync::Arc<D> {
    fn items(&self) -> Vec<Item> {
        (**self).items()
    }

    fn verdicts(&self, observed: &Observed) -> Vec<(String, Verdict)> {
        (**self).verdicts(observed)
    }

    fn reactions(&self) -> Vec<Owed> {
        (**self).reactions()
    }
}
