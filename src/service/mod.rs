//! What each command does, as a function: typed input, events through a sink, a typed report. The command line,
//! the controllers and the web page call the same functions.
//!
//! Nothing here prints, exits, parses arguments, or reads the environment or the current directory. The clock, the
//! event sink and the cancellation come from the caller: [`command_context::CommandContext`].

pub mod apply;
pub mod apply_saved_plan;
pub mod bootstrap;
pub mod build_identity;
pub mod check;
pub mod cluster_changes;
pub mod cluster_copy;
pub mod cluster_nodes;
pub mod command_context;
pub mod command_error;
pub mod deploy;
pub mod deploy_saved_plan;
pub mod deployment_drift;
pub mod deployment_file;
pub mod etcd_defragment;
pub mod etcd_members;
pub mod etcd_recover;
pub mod etcd_remove_learner;
pub mod etcd_save_snapshots;
pub mod etcd_snapshot;
pub mod etcd_snapshots;
pub mod facts;
pub mod file_text;
pub mod fleet_options;
pub mod fleet_work;
pub mod foreseen_deployment;
pub mod foreseen_node;
pub mod host_failure;
pub mod host_failures;
pub mod host_turn;
pub mod hosts;
pub mod membership_steps;
pub mod new_host_key;
pub mod node_check;
pub mod node_list;
pub mod node_selection;
pub mod operation_failure;
pub mod operation_report;
pub mod operations;
pub mod plan;
pub mod plan_deployment;
pub mod plan_file;
pub mod record_sync;
pub mod recorded_nodes;
pub mod remedies;
pub mod remove;
pub mod render;
pub mod reset;
pub mod roster_files;
pub mod run_record;
pub mod saved_file;
mod snapshot_distribution;
pub mod snapshot_file;
mod snapshot_host;
pub mod snapshot_nodes;
pub mod ssh_options;
pub mod states;
pub mod workspace;
pub mod workspace_origin;
