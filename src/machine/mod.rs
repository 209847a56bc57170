//! Machines over a pool of hosts: what a MachineDeployment, a MachineSet and a Machine do next.
//!
//! The planners are pure: values in, a plan out; no I/O, the clock is an argument. The same input results in the same
//! plan, and a plan that changes nothing is empty. [`rollout_decision`] and [`set_decision`] lead from objects of the API
//! to a plan, and from it to the writes that `crate::controller` carries out. For the life of one Machine or Host these are
//! [`life_observation`] and [`host_observation`], [`lifecycle`] and [`host_state`], [`life_writes`] and
//! [`host_life_writes`]; what workers on hosts have found is kept by [`host_record`]. [`pass_events`] reports all of it.

pub mod api;
mod condition;
pub mod count_or_percent;
pub mod csr;
#[cfg(test)]
mod dice;
pub mod drain;
pub mod entered_host;
mod expected_capacity;
mod expected_node;
pub mod health;
pub mod host_addition;
pub mod host_change;
pub mod host_choice;
pub mod host_identity;
pub mod host_index;
pub mod host_job;
pub mod host_life_writes;
pub mod host_observation;
pub mod host_orders;
pub mod host_record;
pub mod host_state;
pub mod job_order;
pub mod job_outcome;
pub mod job_queue;
pub mod join_deadline;
pub mod kubelet_refusal;
pub mod life_observation;
pub mod life_rules;
pub mod life_writes;
pub mod lifecycle;
pub mod machine_observation;
pub mod machine_set;
pub mod node_observation;
mod node_writes;
pub mod object_event;
pub mod object_name;
pub mod object_write;
pub mod observed_machine;
pub mod occupied_node;
pub mod ownership;
pub mod pass_events;
pub mod pool;
pub mod pool_census;
pub mod pool_node;
pub mod pool_offer;
pub mod power_call;
pub mod probe;
mod resource_amount;
pub mod revision_hash;
pub mod rollback;
pub mod rollout;
pub mod rollout_decision;
pub mod rollout_view;
#[cfg(test)]
mod seeded_play;
pub mod set_decision;
pub mod time_to_ready;
pub mod write_plan;
