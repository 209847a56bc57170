//! `metalform serve` over HTTPS: the package repositories and the registry's read-only front.

mod connection_limit;
pub mod connections;
pub mod http;
pub mod notify;
mod registry_front;
pub mod reloading_certificate;
pub mod secure_listener;
