//! One phase a file; the operations put them in order.

mod addresses_recorded;
mod another_api_server;
pub mod apiserver_proxies;
pub mod apiserver_withdrawn;
pub mod base_system;
pub mod cluster_objects;
pub mod control_plane;
pub mod control_plane_files;
pub mod control_plane_stopped;
pub mod drained;
pub mod end_state;
pub mod etcd_member;
pub mod etcd_voter;
pub mod first_control_plane;
pub mod host_reachable;
pub mod host_reset;
pub mod images_loaded;
pub mod member_removed;
pub mod mirror_announced;
pub mod mirror_withdrawn;
pub mod node_deleted;
pub mod node_joined;
pub mod node_stopped;
pub mod package_service;
pub mod preflight;
pub mod reachable;
pub mod removal_allowed;
pub mod reset_allowed;
pub mod roles_withdrawn;
pub mod trust_created;

mod kubelet_token;
mod layer_applied;
mod member_wait;
mod members_used;
mod membership;
mod pods_ready;
