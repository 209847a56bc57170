//! The registry of the cluster's images: what bundles bring, and what users add.
//!
//! The CNCF distribution registry keeps the images. One process of it serves them and refuses writes; the other one
//! listens on a Unix socket that only root and the push server can connect to. [`client`] speaks the OCI
//! distribution-spec v1.1 with that one. An image is copied from an [`image_source`] (the files of a bundle, an
//! archive, another registry) by [`copy`], its parts before what names them, each streamed and verified by its digest.

pub mod archive;
mod archive_entries;
pub mod archived_image;
pub mod bundle_images;
pub mod client;
pub mod collection;
mod copy;
mod docker_archive;
pub mod error;
pub mod image_name;
mod image_source;
pub mod manifest;
pub mod mirrored_image;
mod oci_archive;
mod remote;
pub mod removal;
pub mod user_images;
