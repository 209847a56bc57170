//! What an offline cluster is made of: packages, images, digests.
//!
//! A bundle is a directory: `apt/` (a Debian repository; whoever serves it signs it), `images/` (an OCI image
//! layout) and `bundle.yaml` (every file's digest). [`build::build`] makes one from a component list, part
//! by part, each kept by the digest of its inputs; [`verify::verify`] proves one whole; [`registry::load`]
//! fills a registry from one.

pub mod apt_repository;
pub mod build;
pub mod closure;
pub mod component;
pub mod component_build;
pub mod component_list;
pub mod deb;
pub mod debian_archive;
pub mod digest;
pub mod download;
pub mod entry;
pub mod event;
mod go_module;
pub mod go_source;
pub mod image;
pub mod manifest;
pub mod oci_layout;
pub mod os_packages;
pub mod program;
pub mod registry;
pub mod release_source;
mod stanza;
pub mod verify;

/// Changes with everything in this module that changes the bytes of a bundle.
const BUILDER: &str = concat!(env!("CARGO_PKG_VERSION"), "/1");

/// The modification time in packages and images: 2026-01-01T00:00:00Z
/// (reproducible-builds.org/specs/source-date-epoch).
const SOURCE_DATE_EPOCH: u64 = 1_767_225_600;
