//! Archives of images: OCI layouts, and what `docker save` writes.

use std::io;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream;
use tokio::task::spawn_blocking;

use super::archive_entries::{ArchiveEntries, Extent};
use super::archived_image::{ArchivedImage, Blobs, ImageArchiveError};
use super::error::SourceError;
use super::image_source::{BlobStream, ImageSource, section, verified, whole};
use super::manifest::Part;
use super::{docker_archive, oci_archive};

/// An archive that is open.
pub struct ImageArchive {
    entries: ArchiveEntries,
    blobs: Blobs,
    pub(super) images: Vec<ArchivedImage>,
}

impl ImageArchive {
    /// Reads what is in an archive, compressed with gzip or zstd or not.
    ///
    /// # Errors
    /// When it is none, or an image in it is damaged or incomplete. Layers of an OCI layout are verified when they are
    /// copied.
    pub async fn open(path: PathBuf) -> Result<Self, ImageArchiveError> {
        let opened = spawn_blocking(move || Self::read(&path)).await;
        opened.map_err(io::Error::other)?
    }

    fn read(path: &Path) -> Result<Self, ImageArchiveError> {
        let entries = ArchiveEntries::open(path)?;
        // `docker save` writes both; the layout has the digests that the registry of the image has.
        let found = match oci_archive::images(&entries)? {
            Some(found) => Some(found),
            None => docker_archive::images(&entries)?,
        };
        let (images, blobs) = found.ok_or(ImageArchiveError::NoImages)?;
        Ok(Self { entries, blobs, images })
    }
}

#[async_trait]
impl ImageSource for ImageArchive {
    async fn manifest(&self, part: &Part) -> Result<Bytes, SourceError> {
        whole(self.blob(part).await?, &part.digest).await
    }

    async fn blob(&self, part: &Part) -> Result<BlobStream, SourceError> {
        if let Some(made) = self.blobs.made.get(&part.digest).cloned() {
            return Ok(Box::pin(stream::once(async { Ok(made) })));
        }
        let Extent { offset, size } = *self.blobs.files.get(&part.digest).ok_or(SourceError::Missing)?;
        Ok(verified(section(self.entries.file.clone(), offset, size), part.digest.clone()))
    }
}
