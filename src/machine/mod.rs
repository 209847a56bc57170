//! Machines over a pool of hosts: what a MachineDeployment, a MachineSet and a Machine do next.
//!
//! The planners are pure: values in, a plan out; no I/O, the clock is an argument. The same input results in the same
//! plan, and a plan that changes nothing is empty.

pub mod api;
pub mod count_or_percent;
pub mod csr;
pub mod entered_host;
pub mod health;
pub mod host_addition;
pub mod host_change;
pub mod host_choice;
pub mod join_deadline;
pub mod machine_set;
pub mod observed_machine;
pub mod occupied_node;
pub mod revision_hash;
pub mod rollback;
pub mod rollout;
pub mod rollout_view;
pub mod skew;
