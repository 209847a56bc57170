//! Servers over HTTPS: `metalform serve`, with the package repositories and the registry's read-only front, `metalform
//! push-server`, which accepts images of users, and the metrics of `metalform machine-controller`.

mod access_cache;
mod cached_files;
mod connection_limit;
pub mod connections;
mod credentials;
mod forwarded_headers;
pub mod http;
mod image_blobs;
mod limited_body;
pub mod metrics_server;
mod mirrored_contents;
pub mod notify;
mod origin_contents;
mod origin_front;
mod push_request;
pub mod push_server;
mod registry_front;
pub mod reloading_certificate;
pub mod secure_listener;
mod token_reviewer;
