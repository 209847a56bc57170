//! What every kind answers to: probes, steps, changes, refusals.

pub mod change;
pub mod condition;
pub mod context;
pub mod download;
pub mod ensure;
pub(crate) mod issued;
pub(crate) mod last_start;
pub mod pending;
pub mod probe;
pub(crate) mod refusal;
pub(crate) mod seen;
pub mod step;
