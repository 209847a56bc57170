//! Copies an image into the registry: its blobs, then its manifests, and last the one that has the tag.
//!
//! # Guarantees
//! - A multi-architecture index is copied whole, with its digest.
//! - The tag appears last: a copy that ends early leaves nothing under it, and the next one uploads only what is missing.
//! - Memory is bounded by the manifests of one image; blobs are streamed.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::client::RegistryClient;
use super::error::{RegistryError, RequestError};
use super::image_name::ImageName;
use super::image_source::ImageSource;
use super::manifest::{Manifest, Named, Part};
use crate::bundle::digest::Sha256;

/// Manifests of one image, of 4 MiB at most. An index of every architecture with its attestations has some dozens.
const MANIFESTS: usize = 100;

/// A manifest, and what it names.
struct Read {
    part: Part,
    body: Bytes,
    manifest: Manifest,
}

/// Copies the image with this manifest, and gives it this name.
///
/// # Errors
/// The first part that cannot be read or is refused.
pub(super) async fn copy(
    source: &dyn ImageSource,
    root: &Part,
    name: &ImageName,
    registry: &RegistryClient,
) -> Result<(), RegistryError> {
    let job = Copy { source, name, registry };
    let manifests = job.read(root).await?;
    let mut present = BTreeSet::new();
    // What an index names is behind it in this order.
    for Read { part, body, manifest } in manifests.into_iter().rev() {
        if let Named::Blobs(blobs) = &manifest.named {
            for blob in blobs {
                if present.insert(blob.digest.clone()) {
                    job.push_blob(blob).await?;
                }
            }
        }
        let reference = if part.digest == root.digest { name.tag.clone() } else { part.name() };
        let target = (name.repository.as_str(), reference.as_str());
        let put = registry.put_manifest(target, &manifest.media_type, body).await;
        put.map_err(|source| job.refused(source))?;
    }
    Ok(())
}

struct Copy<'a> {
    source: &'a dyn ImageSource,
    name: &'a ImageName,
    registry: &'a RegistryClient,
}

impl Copy<'_> {
    /// The manifest and all that it names, each behind every one that names it.
    async fn read(&self, root: &Part) -> Result<Vec<Read>, RegistryError> {
        let mut order: Vec<Read> = Vec::new();
        let mut next = vec![root.clone()];
        while !next.is_empty() {
            let mut named = Vec::new();
            for part in next {
                if order.len() == MANIFESTS {
                    return Err(RegistryError::TooMany {
                        reference: self.name.to_string(),
                        limit: MANIFESTS,
                    });
                }
                let body = self.source.manifest(&part).await.map_err(|source| self.unread(&part, source))?;
                let manifest = Manifest::parse(&body).map_err(|source| RegistryError::Manifest {
                    reference: self.name.to_string(),
                    part: part.name(),
                    source,
                })?;
                named.extend(manifest.manifests().to_vec());
                order.push(Read { part, body, manifest });
            }
            next = named;
        }
        let mut seen: BTreeSet<Sha256> = BTreeSet::new();
        // Of one that is named twice, the last one is behind all that name it.
        let mut last: Vec<Read> =
            order.into_iter().rev().filter(|read| seen.insert(read.part.digest.clone())).collect();
        last.reverse();
        Ok(last)
    }

    async fn push_blob(&self, blob: &Part) -> Result<(), RegistryError> {
        let repository = &self.name.repository;
        if self.registry.has_blob(repository, blob).await.map_err(|source| self.refused(source))? {
            return Ok(());
        }
        tracing::info!(image = %self.name, blob = blob.name(), bytes = blob.size, "uploading");
        let content = self.source.blob(blob).await.map_err(|source| self.unread(blob, source))?;
        self.registry.upload(repository, blob, content).await.map_err(|source| self.refused(source))
    }

    fn unread(&self, part: &Part, source: super::error::SourceError) -> RegistryError {
        RegistryError::Read { reference: self.name.to_string(), part: part.name(), source }
    }

    fn refused(&self, source: RequestError) -> RegistryError {
        RegistryError::Push {
            reference: self.name.to_string(),
            place: self.registry.place().to_owned(),
            source: Box::new(source),
        }
    }
}
