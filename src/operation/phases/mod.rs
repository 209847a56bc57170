//! One phase a file; the operations put them in order.

mod addresses_recorded;
pub mod apiserver_proxies;
pub mod base_system;
pub mod cluster_objects;
pub mod control_plane;
pub mod control_plane_files;
pub mod end_state;
pub mod etcd_member;
pub mod etcd_voter;
pub mod first_control_plane;
pub mod images_loaded;
pub mod node_joined;
pub mod package_service;
pub mod preflight;
pub mod reachable;
pub mod trust_created;

mod kubelet_token;
mod layer_applied;
mod member_wait;
mod membership;
mod pods_ready;
