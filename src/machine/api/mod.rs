//! The API of Machines: the objects as Rust types, their CustomResourceDefinitions, and what is valid.
//!
//! `cluster.k8s.io/v1alpha1` MachineDeployment, MachineSet and Machine have the fields and defaults of
//! machine-controller's types; only the provider block is metalform's. `metalform.dev/v1alpha1` Host is a machine of the
//! pool.
//!
//! # What is checked where
//! - One object alone: by the API server, with the schema and the rules of [`rules`]. An object that was stored before a
//!   rule existed stays editable, because the API server does not check unchanged values again.
//! - The provider block: by the API server as far as types go, and by [`provider_spec`] strictly, because a pruned
//!   misspelt field of a host selector would select every host.
//! - Several objects together: by [`conflict`], for the controllers.

pub mod conflict;
pub mod definitions;
pub mod drain_timeout;
mod go_duration;
pub mod host;
pub mod host_claim;
pub mod host_facts;
pub mod host_power;
pub mod host_queue;
pub mod host_ssh;
pub mod host_state;
pub mod host_status;
pub mod label_selector;
pub mod machine;
pub mod machine_deployment;
pub mod machine_metadata;
pub mod machine_set;
pub mod machine_status;
pub mod machine_template;
pub mod provider_id;
pub mod provider_spec;
pub mod remediation;
pub mod rolling_update;
pub mod rollout_record;
pub mod rules;
mod schema;
pub mod ssh_public_key;
pub mod version;

pub use self::definitions::definitions;
