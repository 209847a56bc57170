//! Operations on a cluster: a goal, a world that is observed, and phases that must hold.
//!
//! # How to read it
//! [`deploy`], [`bootstrap`], [`remove`] and [`reset`] are the operations: each a literal list of phases, with what each
//! needs before it.
//! A phase is a file in `phases/`; it answers whether it holds, or what must be observed, done or waited for. The
//! [`driver`] decides what to start; [`run`] performs it through a [`site`]; [`dry_run`] performs only the looks.
//!
//! # Guarantees
//! - What to do next follows from the goal, from what was observed and from what this run has begun: a killed run is
//!   resumed by running it again.
//! - Phases that do not need each other run side by side. Two actions that change the same thing do not, and no look
//!   is used that an action in flight makes worthless.
//! - Effects carry all that they need; a plan travels with the action that applies it.

pub mod bootstrap;
pub mod cause;
pub mod class;
pub mod cluster_site;
pub mod condition;
pub mod contract;
pub mod deploy;
pub mod driver;
pub mod dry_run;
pub mod effect;
mod etcd_container;
pub mod foreseen_changes;
pub mod goal;
pub mod host_access;
pub mod host_reset;
pub mod inputs;
pub mod layer;
pub mod member_host;
pub mod minor_change;
pub mod observed;
pub mod parts;
pub mod phases;
pub mod preflight;
pub mod present_networks;
pub mod removal_goal;
pub mod removal_refusal;
pub mod remove;
pub mod reset;
pub mod resource_change;
pub mod run;
mod script_turn;
pub mod site;
mod static_pod;
pub mod survey;
pub mod values;

#[cfg(test)]
mod tests;
