//! One phase a file; the lists in [`super`] put them in order.

pub mod apiserver_proxies;
pub mod authorities;
pub mod base_system;
pub mod cluster_objects;
pub mod control_plane;
pub mod end_state;
pub mod etcd_voter;
pub mod first_control_plane;
pub mod images_loaded;
pub mod layer_applied;
pub mod node_joined;
pub mod package_service;
pub mod preflight;
pub mod reachable;
