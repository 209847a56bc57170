//! `metalform serve`: package repository, registry front, certificate signing.

pub mod http;
mod registry_front;
mod tls_listener;
