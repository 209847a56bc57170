//! Machines over a pool of hosts: what a MachineDeployment, a MachineSet and a Machine do next.
//!
//! The planners are pure: values in, a plan out; no I/O, the clock is an argument. The same input results in the same
//! plan, and a plan that changes nothing is empty.

pub mod api;
pub mod count_or_percent;
pub mod csr;
#[cfg(test)]
mod dice;
pub mod drain;
pub mod health;
pub mod host_choice;
pub mod host_job;
pub mod host_state;
pub mod join_deadline;
pub mod lifecycle;
pub mod machine_set;
pub mod observed_machine;
pub mod revision_hash;
pub mod rollout;
pub mod skew;
