//! The registry of the cluster: the real CNCF distribution registry behind metalform's servers, with clients that are not
//! ours, skopeo and crane. containerd pulls from it in the lab.
//!
//! Where a program is missing, the tests that need it are left out; `make real-registry` requires all of them.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "all of it is test code; clippy knows only test functions"
)]

#[path = "registry/archives.rs"]
mod archives;
#[path = "registry/clients.rs"]
mod clients;
#[path = "registry/collection.rs"]
mod collection;
#[path = "support/component_binary.rs"]
mod component_binary;
#[path = "support/files_below.rs"]
mod files_below;
#[path = "registry/made_image.rs"]
mod made_image;
#[path = "registry/mirrors.rs"]
mod mirrors;
#[path = "registry/pushes.rs"]
mod pushes;
#[path = "registry/real_registry.rs"]
mod real_registry;
#[path = "registry/remote.rs"]
mod remote;
