//! Everything that an offline cluster is made of: packages, images, digests.
//!
//! A bundle is a directory: package repositories by format (`apt/`; the bootstrap node signs their indexes), `images/`
//! (an OCI image layout) and `bundle.yaml` (the digest of every file). [`build::build`] creates one from a component
//! list, part by part: downloads run side by side and are resumed, and each part is cached by the digest of its
//! inputs. [`verify::verify`] checks that a bundle is complete and unaltered; [`crate::registry`] loads its images.

pub mod build;
pub mod cluster_bundles;
pub mod component;
pub mod component_build;
pub mod component_list;
pub mod content;
pub mod difference;
pub mod digest;
pub mod download;
pub mod entry;
pub mod event;
mod file_records;
pub mod format;
mod go_module;
pub mod go_source;
pub mod image;
mod image_name;
pub mod import;
mod libraries;
pub mod list_change;
pub mod manifest;
pub mod oci_layout;
mod origins;
pub mod own_program;
pub mod pack;
pub mod problem;
pub mod program;
pub mod program_needs;
pub mod release_source;
pub mod sbom;
pub mod served_bundle;
pub mod signature;
pub mod staging;
mod sweep;
pub mod unpack;
pub mod verify;
mod worker_thread;

/// Part of every cache key. Changes with everything in this module that changes the bytes of a bundle.
const BUILDER: &str = concat!(env!("CARGO_PKG_VERSION"), "/2");

/// The modification time in packages and images: 2026-01-01T00:00:00Z
/// (reproducible-builds.org/specs/source-date-epoch).
const SOURCE_DATE_EPOCH: u64 = 1_767_225_600;
