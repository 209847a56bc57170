//! Container images of one layer from static binaries: the same inputs give the same digests.
//!
//! Formats: OCI image-spec v1.1 (manifest, configuration, zstd layers).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use oci_spec::image::{
    Arch, ConfigBuilder, Descriptor, ImageConfigurationBuilder, ImageManifestBuilder, MediaType, Os,
    RootFsBuilder,
};
use sha2::Digest;

use super::SOURCE_DATE_EPOCH;
use super::component::ImageComponent;
use super::digest::Sha256;
use crate::model::platform::Architecture;

/// As in upstream's images, so that `command: [etcd]` works.
const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Fast to compress and to unpack; higher levels save little on Go binaries.
const ZSTD_LEVEL: i32 = 3;

/// Why an image was not built.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// A binary could not be read, or a blob could not be written.
    #[error("cannot write image {reference}")]
    Write {
        /// Of the image.
        reference: String,
        /// From the operating system.
        source: io::Error,
    },
    /// The configuration or manifest is invalid.
    #[error("cannot describe image {reference}")]
    Describe {
        /// Of the image.
        reference: String,
        /// From the builder.
        source: oci_spec::OciSpecError,
    },
}

/// Writes layer, configuration and manifest to `blobs`, each named by its digest, and returns the digest
/// of the manifest. `reference` is used in messages only.
///
/// # Errors
/// When a file cannot be read or written.
pub(super) fn make(
    (image, reference): (&ImageComponent, &str),
    architecture: Architecture,
    binaries: &Path,
    blobs: &Path,
) -> Result<Sha256, ImageError> {
    let write = |source| ImageError::Write { reference: reference.to_owned(), source };
    let (layer, diff_id) = layer(&image.files, binaries, blobs).map_err(write)?;
    let (configuration, manifest_of) = (configuration(image, architecture, &diff_id), manifest);
    let configuration =
        configuration.map_err(|source| ImageError::Describe { reference: reference.to_owned(), source })?;
    let configuration = blob(blobs, configuration.as_bytes(), MediaType::ImageConfig).map_err(write)?;
    let manifest = manifest_of(configuration, layer)
        .map_err(|source| ImageError::Describe { reference: reference.to_owned(), source })?;
    fs::write(blobs.join(Sha256::of(manifest.as_bytes()).as_str()), &manifest).map_err(write)?;
    Ok(Sha256::of(manifest.as_bytes()))
}

fn configuration(
    image: &ImageComponent,
    architecture: Architecture,
    diff_id: &Sha256,
) -> oci_spec::Result<String> {
    let mut config = ConfigBuilder::default().env([PATH.to_owned()]).working_dir("/".to_owned());
    if !image.entrypoint.is_empty() {
        config = config.entrypoint(image.entrypoint.clone());
    }
    if let Some(user) = &image.user {
        config = config.user(user.clone());
    }
    let layers =
        RootFsBuilder::default().typ("layers".to_owned()).diff_ids([format!("sha256:{diff_id}")]).build()?;
    ImageConfigurationBuilder::default()
        .architecture(match architecture {
            Architecture::Amd64 => Arch::Amd64,
            Architecture::Arm64 => Arch::ARM64,
        })
        .os(Os::Linux)
        .config(config.build()?)
        .rootfs(layers)
        .history([])
        .build()?
        .to_string()
}

fn manifest(configuration: Descriptor, layer: Descriptor) -> oci_spec::Result<String> {
    ImageManifestBuilder::default()
        .schema_version(2_u32)
        .media_type(MediaType::ImageManifest)
        .config(configuration)
        .layers([layer])
        .build()?
        .to_string()
}

fn blob(blobs: &Path, content: &[u8], media_type: MediaType) -> io::Result<Descriptor> {
    let digest = Sha256::of(content);
    fs::write(blobs.join(digest.as_str()), content)?;
    descriptor(media_type, content.len() as u64, &digest)
}

fn descriptor(media_type: MediaType, size: u64, digest: &Sha256) -> io::Result<Descriptor> {
    let digest = format!("sha256:{digest}").parse::<oci_spec::image::Digest>().map_err(io::Error::other)?;
    Ok(Descriptor::new(media_type, size, digest))
}

/// Returns the layer and the digest of its uncompressed bytes.
fn layer(
    files: &BTreeMap<String, String>,
    binaries: &Path,
    blobs: &Path,
) -> io::Result<(Descriptor, Sha256)> {
    let unnamed = tempfile::NamedTempFile::new_in(blobs)?;
    let compressed = zstd::Encoder::new(unnamed.as_file(), ZSTD_LEVEL)?;
    let mut archive = tar::Builder::new(Hashing { hasher: sha2::Sha256::new(), to: compressed });
    let parents = files.keys().flat_map(|path| Path::new(path).ancestors().skip(1));
    let parents: BTreeSet<_> = parents.filter_map(|path| path.strip_prefix("/").ok()).collect();
    for parent in parents.into_iter().filter(|path| !path.as_os_str().is_empty()) {
        let mut header = header(tar::EntryType::Directory, 0);
        archive.append_data(&mut header, format!("{}/", parent.display()), io::empty())?;
    }
    for (path, binary) in files {
        let content = File::open(binaries.join(binary))?;
        let mut header = header(tar::EntryType::Regular, content.metadata()?.len());
        archive.append_data(&mut header, path.trim_start_matches('/'), content)?;
    }
    let Hashing { hasher, to } = archive.into_inner()?;
    to.finish()?;
    let (digest, size) = Sha256::of_file(unnamed.path())?;
    // Temporary files have mode 0600.
    fs::set_permissions(unnamed.path(), std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
    unnamed.persist(blobs.join(digest.as_str()))?;
    let diff_id = hex::encode(hasher.finalize()).parse().map_err(io::Error::other)?;
    Ok((descriptor(MediaType::ImageLayerZstd, size, &digest)?, diff_id))
}

fn header(entry_type: tar::EntryType, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(entry_type);
    header.set_size(size);
    header.set_mode(0o755);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(SOURCE_DATE_EPOCH);
    header
}

/// Hashes the bytes that are written through it.
struct Hashing<W> {
    hasher: sha2::Sha256,
    to: W,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn an_image_is_reproducible_and_contains_its_files() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("tool"), "binary").unwrap();
        let image: ImageComponent = serde_saphyr::from_str(
            "{reference: 'example.org/tool:v1', files: {/usr/local/bin/tool: tool}, entrypoint: [/usr/local/bin/tool]}",
        )
        .unwrap();
        let made = ["one", "two"].map(|name| {
            let blobs = directory.path().join(name);
            fs::create_dir(&blobs).unwrap();
            make((&image, "example.org/tool:v1"), Architecture::Amd64, directory.path(), &blobs).unwrap()
        });
        assert_eq!(made[0], made[1]);
        let blobs = directory.path().join("one");
        assert_eq!(fs::read_dir(&blobs).unwrap().count(), 3);
        let manifest = oci_spec::image::ImageManifest::from_file(blobs.join(made[0].as_str())).unwrap();
        let layer = File::open(blobs.join(manifest.layers()[0].as_digest_sha256().unwrap())).unwrap();
        let mut archive = tar::Archive::new(zstd::Decoder::new(layer).unwrap());
        let names: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let mut entry = entry.unwrap();
                let mut content = String::new();
                entry.read_to_string(&mut content).unwrap();
                (entry.path().unwrap().display().to_string(), content)
            })
            .collect();
        let directories =
            ["usr/", "usr/local/", "usr/local/bin/"].map(|name| (name.to_owned(), String::new()));
        assert_eq!(names[..3], directories);
        assert_eq!(names[3..], [("usr/local/bin/tool".to_owned(), "binary".to_owned())]);
    }
}
