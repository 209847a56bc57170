//! Servers over HTTPS: `metalform serve`, with the package repositories and the registry's read-only front, and the metrics of
//! `metalform machine-controller`.

mod access_cache;
mod cached_files;
mod connection_limit;
pub mod connections;
pub mod http;
mod image_blobs;
pub mod metrics_server;
pub mod notify;
mod registry_front;
pub mod reloading_certificate;
pub mod secure_listener;
