//! What `docker save` wrote before it wrote an OCI layout, and what `skopeo copy` to `docker-archive:` and `podman save`
//! write: `manifest.json`, configurations and layers. The manifests of its images are made here.
//!
//! Format: github.com/moby/docker-image-spec, v1.2, "Combined Image JSON + Filesystem Changeset Format".

use std::collections::BTreeMap;
use std::io::{self, Read};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;

use super::archive_entries::{ArchiveEntries, Extent};
use super::archived_image::{ArchivedImage, Blobs, ImageArchiveError};
use super::error::SourceError;
use super::image_name::ImageName;
use super::manifest::{IMAGE, Part};
use crate::bundle::digest::Sha256;

/// Of the configuration of an image (image-spec).
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
/// Of an uncompressed layer (image-spec).
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
/// Of a compressed one.
const LAYER_GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Saved {
    config: String,
    repo_tags: Option<Vec<String>>,
    layers: Vec<String>,
}

#[derive(Deserialize)]
struct Configuration {
    rootfs: RootFs,
}

#[derive(Deserialize)]
struct RootFs {
    diff_ids: Vec<String>,
}

/// The images of the archive; `None` where it has no `manifest.json`.
pub(super) fn images(
    entries: &ArchiveEntries,
) -> Result<Option<(Vec<ArchivedImage>, Blobs)>, ImageArchiveError> {
    let Some(saved) = entries.read("manifest.json").map_err(ImageArchiveError::part("manifest.json"))? else {
        return Ok(None);
    };
    let saved: Vec<Saved> = serde_json::from_slice(&saved)
        .map_err(|error| ImageArchiveError::Document { path: "manifest.json", reason: error.to_string() })?;
    let mut blobs = Blobs { files: BTreeMap::new(), made: BTreeMap::new() };
    let mut images = Vec::new();
    for image in saved {
        let root = image_of(entries, &image, &mut blobs)?;
        match image.repo_tags.unwrap_or_default() {
            tags if tags.is_empty() => images.push(ArchivedImage { name: None, root }),
            tags => images.extend(
                tags.iter()
                    .map(|tag| ArchivedImage { name: tag.parse::<ImageName>().ok(), root: root.clone() }),
            ),
        }
    }
    Ok(Some((images, blobs)))
}

/// Finds the blobs of an image, and makes its manifest.
fn image_of(entries: &ArchiveEntries, image: &Saved, blobs: &mut Blobs) -> Result<Part, ImageArchiveError> {
    let path = &image.config;
    let body = entries.read(path).map_err(ImageArchiveError::part(path))?;
    let body = body.ok_or_else(|| ImageArchiveError::part(path)(SourceError::Missing))?;
    let config = Sha256::of(&body);
    let stem = path.rsplit('/').next().unwrap_or(path).trim_end_matches(".json");
    if stem.parse::<Sha256>().is_ok_and(|named| named != config) {
        return Err(ImageArchiveError::part(path)(SourceError::Altered {
            found: format!("sha256:{config}"),
        }));
    }
    let configuration: Configuration = serde_json::from_slice(&body).map_err(|error| {
        ImageArchiveError::Document { path: "the configuration", reason: error.to_string() }
    })?;
    let diff_ids = &configuration.rootfs.diff_ids;
    if diff_ids.len() != image.layers.len() {
        let reason = format!("{} layers, but {} in the configuration", image.layers.len(), diff_ids.len());
        return Err(ImageArchiveError::Document { path: "manifest.json", reason });
    }
    let mut layers = Vec::new();
    for (path, diff_id) in image.layers.iter().zip(diff_ids) {
        layers.push(layer(entries, path, diff_id, blobs)?);
    }
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": IMAGE,
        "config": { "mediaType": CONFIG, "digest": format!("sha256:{config}"), "size": body.len() },
        "layers": layers.iter().map(|layer| json!({
            "mediaType": layer.media_type, "digest": layer.name(), "size": layer.size,
        })).collect::<Vec<_>>(),
    });
    blobs.made.insert(config, body.into());
    let manifest = Bytes::from(manifest.to_string());
    let (digest, size) = (Sha256::of(&manifest), manifest.len() as u64);
    blobs.made.insert(digest.clone(), manifest);
    Ok(Part { digest, size, media_type: IMAGE.to_owned() })
}

fn layer(
    entries: &ArchiveEntries,
    path: &str,
    diff_id: &str,
    blobs: &mut Blobs,
) -> Result<Part, ImageArchiveError> {
    let failed = |source: SourceError| ImageArchiveError::part(path)(source);
    let extent = entries.find(path).ok_or_else(|| failed(SourceError::Missing))?;
    let gzip = is_gzip(entries, extent).map_err(|error| failed(error.into()))?;
    let digest = Sha256::of_reader(&mut entries.reader(extent)).map_err(|error| failed(error.into()))?;
    if !gzip && format!("sha256:{digest}") != diff_id {
        return Err(failed(SourceError::Altered { found: format!("sha256:{digest}") }));
    }
    blobs.files.insert(digest.clone(), extent);
    let media_type = if gzip { LAYER_GZIP } else { LAYER };
    Ok(Part { digest, size: extent.size, media_type: media_type.to_owned() })
}

fn is_gzip(entries: &ArchiveEntries, extent: Extent) -> io::Result<bool> {
    let mut magic = Vec::new();
    entries.reader(extent).take(2).read_to_end(&mut magic)?;
    Ok(magic == [0x1f, 0x8b])
}
