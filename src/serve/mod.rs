//! `metalform serve` over HTTPS: the package repositories and the registry's read-only front.

pub mod http;
pub mod notify;
mod registry_front;
pub mod reloading_certificate;
mod tls_listener;
