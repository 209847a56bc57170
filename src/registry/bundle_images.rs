//! Loads the images of a bundle into the registry.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::client::RegistryClient;
use super::copy::copy;
use super::error::RegistryError;
use super::image_name::ImageName;
use super::image_source::BundleSource;
use super::manifest::{IMAGE, Part};
use crate::bundle::digest::Sha256;
use crate::bundle::manifest::Bundle;
use crate::bundle::oci_layout;

/// The result for an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loaded {
    /// The registry has the tag with the same digest.
    AlreadyThere,
    /// The tag was missing, or had another digest.
    Pushed,
}

/// The images whose tag is missing in the registry, or has another digest.
///
/// # Errors
/// An invalid name. An unreachable registry lacks all images.
pub async fn missing(bundle: &Bundle, socket: &Path) -> Result<BTreeSet<String>, RegistryError> {
    let registry = RegistryClient::at(socket)?;
    let mut missing = BTreeSet::new();
    for (reference, digest) in &bundle.images {
        if !has(&registry, &ImageName::complete(reference)?, digest).await {
            missing.insert(reference.clone());
        }
    }
    Ok(missing)
}

/// Pushes the [`missing`] images and reports each image to `progress`. Returns the number of pushed images. The repository
/// of an image is its full upstream name with the host: `registry.k8s.io/kube-apiserver`.
///
/// # Errors
/// The first image that is refused; those before it were pushed.
pub async fn load(
    directory: &Path,
    bundle: &Bundle,
    socket: &Path,
    progress: &(dyn Fn(&str, Loaded) + Send + Sync),
) -> Result<usize, RegistryError> {
    load_into(directory, bundle, &RegistryClient::at(socket)?, progress).await
}

/// As [`load`], of the bundle in this directory.
///
/// # Errors
/// As there, and when the manifest of the bundle cannot be read.
pub async fn load_of(directory: &Path, registry: &RegistryClient) -> Result<usize, RegistryError> {
    let bundle = Bundle::read(directory).map_err(|source| RegistryError::Bundle {
        directory: directory.display().to_string(),
        source: Box::new(source),
    })?;
    load_into(directory, &bundle, registry, &|_, _| ()).await
}

async fn load_into(
    directory: &Path,
    bundle: &Bundle,
    registry: &RegistryClient,
    progress: &(dyn Fn(&str, Loaded) + Send + Sync),
) -> Result<usize, RegistryError> {
    let source = BundleSource(directory.to_owned());
    let mut pushed = 0;
    for (reference, digest) in &bundle.images {
        let name = ImageName::complete(reference)?;
        let loaded = if has(registry, &name, digest).await {
            Loaded::AlreadyThere
        } else {
            copy(&source, &root(directory, reference, digest)?, &name, registry).await?;
            Loaded::Pushed
        };
        pushed += usize::from(loaded == Loaded::Pushed);
        progress(reference, loaded);
    }
    Ok(pushed)
}

async fn has(registry: &RegistryClient, name: &ImageName, digest: &Sha256) -> bool {
    registry.digest(&name.repository, &name.tag).await.is_ok_and(|found| found.as_ref() == Some(digest))
}

fn root(directory: &Path, reference: &str, digest: &Sha256) -> Result<Part, RegistryError> {
    let path = oci_layout::blob(directory, digest);
    match fs::metadata(&path) {
        Ok(file) => Ok(Part { digest: digest.clone(), size: file.len(), media_type: IMAGE.to_owned() }),
        Err(source) => Err(RegistryError::Read {
            reference: reference.to_owned(),
            part: path.display().to_string(),
            source: source.into(),
        }),
    }
}
