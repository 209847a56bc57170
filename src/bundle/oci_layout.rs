//! The OCI image layout in a bundle (image-spec v1.1, image-layout.md).

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use oci_spec::image::MediaType;
use serde_json::json;

use super::digest::Sha256;
use crate::model::platform::Architecture;

/// Path of a blob in the bundle.
pub(super) fn blob_path(digest: &Sha256) -> String {
    format!("images/blobs/sha256/{digest}")
}

/// Path of a blob on disk.
pub fn blob(bundle: &Path, digest: &Sha256) -> PathBuf {
    bundle.join(blob_path(digest))
}

/// Writes `oci-layout` and `index.json` for existing blobs. Each manifest is named by its full reference, in the
/// annotation of the specification and in containerd's (`ctr images import`).
///
/// # Errors
/// From the operating system.
pub(super) fn write_index(
    bundle: &Path,
    images: &BTreeMap<String, Sha256>,
    architecture: Architecture,
) -> io::Result<()> {
    let mut manifests = Vec::new();
    for (reference, digest) in images {
        manifests.push(json!({
            "mediaType": MediaType::ImageManifest.to_string(),
            "digest": format!("sha256:{digest}"),
            "size": fs::metadata(blob(bundle, digest))?.len(),
            "annotations": {
                "io.containerd.image.name": reference,
                "org.opencontainers.image.ref.name": reference,
            },
            "platform": { "architecture": architecture.as_str(), "os": "linux" },
        }));
    }
    let index = json!({
        "schemaVersion": 2,
        "mediaType": MediaType::ImageIndex.to_string(),
        "manifests": manifests,
    });
    fs::create_dir_all(bundle.join("images"))?;
    fs::write(bundle.join("images/index.json"), index.to_string())?;
    fs::write(bundle.join("images/oci-layout"), json!({ "imageLayoutVersion": "1.0.0" }).to_string())
}
