//! `metalform serve`: package repository, registry front, certificate signing.

pub mod http;
pub mod notify;
mod registry_front;
mod tls_listener;
