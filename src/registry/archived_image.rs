//! What archives of images have in common.

use std::collections::BTreeMap;
use std::io;

use bytes::Bytes;

use super::archive_entries::Extent;
use super::error::SourceError;
use super::image_name::ImageName;
use super::manifest::Part;
use crate::bundle::digest::Sha256;

/// Why the images of an archive cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ImageArchiveError {
    /// Not a tar archive, or not a whole one.
    #[error("not a whole tar archive")]
    Archive(#[from] io::Error),
    /// A tar archive without images.
    #[error(
        "no index.json and no manifest.json in it: not an OCI image layout, and not written by `docker save`"
    )]
    NoImages,
    /// A document of the archive is wrong.
    #[error("{path}: {reason}")]
    Document {
        /// In the archive.
        path: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// A file of the archive cannot be read, or is not what its name has the digest of.
    #[error("{path}")]
    Part {
        /// In the archive.
        path: String,
        /// Why.
        source: SourceError,
    },
    /// Some platforms of an index are there, and others are not.
    #[error("index {index}: {missing} of its {all} manifests are not in the archive")]
    Incomplete {
        /// `sha256:...`
        index: String,
        /// How many are missing.
        missing: usize,
        /// How many there should be.
        all: usize,
    },
}

impl ImageArchiveError {
    pub(super) fn part(path: &str) -> impl FnOnce(SourceError) -> Self {
        let path = path.to_owned();
        |source| Self::Part { path, source }
    }
}

/// An image in an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ArchivedImage {
    /// Where the archive has a name that the registry can serve.
    pub(super) name: Option<ImageName>,
    pub(super) root: Part,
}

/// The blobs of an archive by their digests.
#[derive(Debug)]
pub(super) struct Blobs {
    pub(super) files: BTreeMap<Sha256, Extent>,
    /// Which no file of the archive has.
    pub(super) made: BTreeMap<Sha256, Bytes>,
}
