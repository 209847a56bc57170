//! What every kind answers to: probes, steps, changes, refusals.

pub mod change;
pub mod context;
pub mod ensure;
pub(in crate::resource) mod footprint;
pub mod host_condition;
pub mod kind;
pub mod owed;
pub mod pending;
pub mod probe;
pub(in crate::resource) mod refusal;
pub mod remote_file;
pub mod resource_id;
pub(in crate::resource) mod seen;
pub mod step;
