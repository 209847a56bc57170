//! The OCI image layout in a bundle (image-spec v1.1, image-layout.md).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use oci_spec::image::{Descriptor, ImageConfiguration, ImageIndex, ImageManifest, MediaType};
use serde_json::{Value, json};

use super::digest::Sha256;

/// Directory of the blobs in the bundle; each is named by the hexadecimal digits of its digest.
pub(super) const BLOBS: &str = "images/blobs/sha256";

/// Path of a blob in the bundle.
pub(super) fn blob_path(digest: &Sha256) -> String {
    format!("{BLOBS}/{digest}")
}

/// Path of a blob on disk.
pub fn blob(bundle: &Path, digest: &Sha256) -> PathBuf {
    bundle.join(blob_path(digest))
}

/// The name of a manifest among the [`blobs`] of an image index.
pub(super) const MANIFEST: &str = "manifest";

/// What a manifest or an image index refers to: `config` and `layer`, or a [`MANIFEST`] for each platform.
///
/// # Errors
/// When it is neither.
pub(super) fn parts(content: &[u8]) -> oci_spec::Result<Vec<(&'static str, Descriptor)>> {
    let error = match ImageManifest::from_reader(content) {
        Ok(manifest) => {
            let layers = manifest.layers().iter().map(|layer| ("layer", layer.clone()));
            return Ok(std::iter::once(("config", manifest.config().clone())).chain(layers).collect());
        }
        Err(error) => error,
    };
    let index = ImageIndex::from_reader(content).map_err(|_| error)?;
    Ok(index.manifests().iter().map(|manifest| (MANIFEST, manifest.clone())).collect())
}

/// The blobs of the image with this manifest or image index: its [`parts`], and those of each manifest that can be read.
///
/// # Errors
/// When the file with this digest cannot be read, or is neither.
pub(super) fn blobs(bundle: &Path, digest: &Sha256) -> oci_spec::Result<Vec<(&'static str, Descriptor)>> {
    let mut found = parts(&fs::read(blob(bundle, digest))?)?;
    let manifests = found.iter().filter(|(part, _)| *part == MANIFEST);
    let nested = manifests.filter_map(|(_, manifest)| blobs(bundle, &sha256(manifest)?).ok());
    let nested: Vec<_> = nested.flatten().collect();
    found.extend(nested);
    Ok(found)
}

/// The digest of a blob; `None` where it is not a SHA-256.
pub(super) fn sha256(blob: &Descriptor) -> Option<Sha256> {
    blob.as_digest_sha256()?.parse().ok()
}

/// The architectures of the image with this manifest or image index, from the configuration of each manifest.
///
/// # Errors
/// When a file cannot be read.
pub(super) fn architectures(bundle: &Path, digest: &Sha256) -> oci_spec::Result<BTreeSet<String>> {
    let configurations = blobs(bundle, digest)?.into_iter().filter(|(part, _)| *part == "config");
    let paths = configurations.filter_map(|(_, config)| Some(blob(bundle, &sha256(&config)?)));
    paths.map(|path| Ok(ImageConfiguration::from_file(path)?.architecture().to_string())).collect()
}

/// Writes `oci-layout` and `index.json` for existing manifests, and an image index for each reference that has manifests for
/// several architectures. Returns the digest of each image: of its only manifest, or of its index. Each is named by its full
/// reference, in the annotation of the specification and in containerd's (`ctr images import`).
///
/// # Errors
/// From the operating system, and when a manifest or a configuration cannot be read.
pub(super) fn write_images<'a>(
    bundle: &Path,
    manifests: impl Iterator<Item = (&'a String, &'a Sha256)>,
) -> io::Result<BTreeMap<String, Sha256>> {
    let mut of_reference: BTreeMap<&String, BTreeMap<String, Sha256>> = BTreeMap::new();
    for (reference, digest) in manifests {
        let architectures = architectures(bundle, digest).map_err(io::Error::other)?;
        let of_architecture = architectures.into_iter().map(|architecture| (architecture, digest.clone()));
        of_reference.entry(reference).or_default().extend(of_architecture);
    }
    let mut images = BTreeMap::new();
    let mut listed = Vec::new();
    for (reference, manifests) in of_reference {
        let names = json!({
            "io.containerd.image.name": reference,
            "org.opencontainers.image.ref.name": reference,
        });
        let mut only = manifests.iter();
        let (described, digest) = match (only.next(), only.next()) {
            (Some((architecture, digest)), None) => {
                let mut described = descriptor(bundle, &MediaType::ImageManifest, digest)?;
                described["annotations"] = names;
                described["platform"] = platform(architecture);
                (described, digest.clone())
            }
            _ => {
                let digest = write_image_index(bundle, &manifests)?;
                let mut described = descriptor(bundle, &MediaType::ImageIndex, &digest)?;
                described["annotations"] = names;
                (described, digest)
            }
        };
        listed.push(described);
        images.insert(reference.clone(), digest);
    }
    fs::create_dir_all(bundle.join("images"))?;
    fs::write(bundle.join("images/index.json"), image_index(listed))?;
    fs::write(bundle.join("images/oci-layout"), json!({ "imageLayoutVersion": "1.0.0" }).to_string())?;
    Ok(images)
}

/// Architecture → digest of the manifest. Returns the digest of the index.
fn write_image_index(bundle: &Path, manifests: &BTreeMap<String, Sha256>) -> io::Result<Sha256> {
    let mut listed = Vec::new();
    for (architecture, digest) in manifests {
        let mut described = descriptor(bundle, &MediaType::ImageManifest, digest)?;
        described["platform"] = platform(architecture);
        listed.push(described);
    }
    let index = image_index(listed);
    let digest = Sha256::of(index.as_bytes());
    fs::write(blob(bundle, &digest), index)?;
    Ok(digest)
}

fn image_index(manifests: Vec<Value>) -> String {
    let index = json!({
        "schemaVersion": 2,
        "mediaType": MediaType::ImageIndex.to_string(),
        "manifests": manifests,
    });
    index.to_string()
}

fn descriptor(bundle: &Path, media_type: &MediaType, digest: &Sha256) -> io::Result<Value> {
    Ok(json!({
        "mediaType": media_type.to_string(),
        "digest": format!("sha256:{digest}"),
        "size": fs::metadata(blob(bundle, digest))?.len(),
    }))
}

fn platform(architecture: &str) -> Value {
    json!({ "architecture": architecture, "os": "linux" })
}
