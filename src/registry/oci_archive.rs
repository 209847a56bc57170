//! An OCI image layout in an archive (image-spec v1.1, image-layout.md), as `skopeo copy` to `oci-archive:`, `ctr images
//! export`, `nerdctl save` and `docker save` write it.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::archive_entries::ArchiveEntries;
use super::archived_image::{ArchivedImage, Blobs, ImageArchiveError};
use super::error::SourceError;
use super::image_name::ImageName;
use super::manifest::{Manifest, Part, sha256};

/// The full reference, of containerd.
const CONTAINERD_NAME: &str = "io.containerd.image.name";
/// The reference, or only its tag (image-spec, annotations.md).
const REFERENCE_NAME: &str = "org.opencontainers.image.ref.name";

/// Indexes in one another, of which the archive has one manifest each.
const INDEXES: usize = 4;

#[derive(Deserialize)]
struct Index {
    manifests: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    media_type: String,
    digest: String,
    size: u64,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

/// The images of the layout; `None` where there is none.
pub(super) fn images(
    entries: &ArchiveEntries,
) -> Result<Option<(Vec<ArchivedImage>, Blobs)>, ImageArchiveError> {
    let Some(index) = entries.read("index.json").map_err(ImageArchiveError::part("index.json"))? else {
        return Ok(None);
    };
    let index: Index = serde_json::from_slice(&index)
        .map_err(|error| ImageArchiveError::Document { path: "index.json", reason: error.to_string() })?;
    let of_name = |(name, extent): (&str, _)| Some((name.parse().ok()?, extent));
    let blobs =
        Blobs { files: entries.below("blobs/sha256/").filter_map(of_name).collect(), made: BTreeMap::new() };
    let mut images = Vec::new();
    for Entry { media_type, digest, size, annotations } in index.manifests {
        let Some(digest) = sha256(&digest) else {
            return Err(ImageArchiveError::Document {
                path: "index.json",
                reason: format!("{digest} is not a SHA-256 digest"),
            });
        };
        let root = present(entries, &blobs, Part { digest, size, media_type })?;
        images.push(ArchivedImage { name: name(&annotations), root });
    }
    Ok(Some((images, blobs)))
}

/// The name, where it is more than a tag.
fn name(annotations: &BTreeMap<String, String>) -> Option<ImageName> {
    let complete = |name: &&String| name.contains(['/', ':']);
    let named = annotations.get(CONTAINERD_NAME).or_else(|| annotations.get(REFERENCE_NAME).filter(complete));
    named?.parse().ok()
}

/// The manifest, or the only one of an index that the archive has: an image that was pulled for one platform is saved
/// with the index of all.
fn present(entries: &ArchiveEntries, blobs: &Blobs, part: Part) -> Result<Part, ImageArchiveError> {
    let mut part = part;
    // Nothing is verified yet: an index may name itself.
    for _ in 0..INDEXES {
        let path = format!("blobs/sha256/{}", part.digest);
        let body = entries.read(&path).map_err(ImageArchiveError::part(&path))?;
        let body = body.ok_or_else(|| ImageArchiveError::part(&path)(SourceError::Missing))?;
        // One that cannot be parsed is reported when it is copied.
        let Ok(manifest) = Manifest::parse(&body) else { return Ok(part) };
        let named = manifest.manifests();
        let (there, missing): (Vec<&Part>, Vec<&Part>) =
            named.iter().partition(|named| blobs.files.contains_key(&named.digest));
        match there.as_slice() {
            _ if missing.is_empty() => return Ok(part),
            [one] => part = (*one).clone(),
            _ => {
                let (index, missing, all) = (part.name(), missing.len(), named.len());
                return Err(ImageArchiveError::Incomplete { index, missing, all });
            }
        }
    }
    Ok(part)
}
