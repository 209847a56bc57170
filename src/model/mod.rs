//! Plain validated data. No I/O, no clock, no async; all other modules may use it.

pub mod api_contract;
pub mod bootstrap_configuration;
pub mod cluster;
pub mod cluster_networks;
pub mod document;
pub mod error_chain;
pub mod event;
pub mod facts;
pub mod image_reference;
pub mod name;
pub mod near;
pub mod node;
pub mod node_notice;
pub mod one_or_many;
pub mod operation_record;
pub mod operation_summary;
pub mod platform;
pub mod recorded_phase;
pub mod role;
pub mod roster;
pub mod selector;
pub mod shell_word;
pub mod ssh_syntax;
pub mod ssh_target;
pub mod values;
pub mod yaml_error;
