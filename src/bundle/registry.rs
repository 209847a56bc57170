//! Fills a registry on the loopback interface with the images of a bundle.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::errors::OciDistributionError;
use oci_client::secrets::RegistryAuth;
use oci_client::{Client, Reference};
use oci_spec::image::{ImageManifest, MediaType};

use super::digest::Sha256;
use super::manifest::Bundle;
use super::oci_layout;

/// Why an image was not loaded.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// It is spoken to in plain text and without a password, so it must be this machine's own.
    #[error("the registry {0} is not on the loopback interface")]
    NotLoopback(SocketAddr),
    /// The reference cannot be a repository's name in the registry.
    #[error("image {0} cannot be named in the registry")]
    Name(String),
    /// A file of the bundle cannot be read.
    #[error("image {reference}: {path} cannot be read")]
    Read {
        /// The image.
        reference: String,
        /// Path of the blob.
        path: String,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The registry refused, or is not there.
    #[error("image {reference} is not taken by the registry {registry}")]
    Push {
        /// The image.
        reference: String,
        /// Where it was pushed.
        registry: SocketAddr,
        /// What it said.
        source: OciDistributionError,
    },
}

/// What became of one image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loaded {
    /// It was there already, with this very digest.
    AlreadyThere,
    /// It was pushed.
    Pushed,
}

/// The images that the registry does not have under their tag with the digest of the bundle.
///
/// # Errors
/// An image whose name no registry takes. A registry that is not there has none of them.
pub async fn missing(bundle: &Bundle, registry: SocketAddr) -> Result<BTreeSet<String>, RegistryError> {
    let client = client();
    let mut missing = BTreeSet::new();
    for (reference, digest) in &bundle.images {
        if !is_there(&client, &target(reference, registry)?, digest).await {
            missing.insert(reference.clone());
        }
    }
    Ok(missing)
}

fn client() -> Client {
    // The client is built with TLS though it does not speak it here; an error says that a provider is set.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::new(ClientConfig { protocol: ClientProtocol::Http, use_monolithic_push: true, ..Default::default() })
}

fn target(reference: &str, registry: SocketAddr) -> Result<Reference, RegistryError> {
    format!("{registry}/{reference}").parse().map_err(|_| RegistryError::Name(reference.to_owned()))
}

async fn is_there(client: &Client, target: &Reference, digest: &Sha256) -> bool {
    let present = client.fetch_manifest_digest(target, &RegistryAuth::Anonymous).await;
    present.is_ok_and(|present| present == format!("sha256:{digest}"))
}

/// Pushes every image that the registry does not have under its tag with the same digest, and tells
/// `progress` of each; the answer is how many were pushed. In the registry an image's repository is its full upstream name, host included:
/// `registry.k8s.io/kube-apiserver`.
///
/// # Errors
/// The first image that is refused; those before it are there.
pub async fn load(
    directory: &Path,
    bundle: &Bundle,
    registry: SocketAddr,
    progress: &(dyn Fn(&str, Loaded) + Send + Sync),
) -> Result<usize, RegistryError> {
    if !registry.ip().is_loopback() {
        return Err(RegistryError::NotLoopback(registry));
    }
    let client = client();
    let mut pushed = 0;
    for (reference, digest) in &bundle.images {
        let target = target(reference, registry)?;
        let outcome = if is_there(&client, &target, digest).await {
            Loaded::AlreadyThere
        } else {
            push(&client, &target, (reference, digest), directory).await.map_err(|error| match error {
                Refused::Read { path, source } => {
                    RegistryError::Read { reference: reference.clone(), path, source }
                }
                Refused::Push(source) => {
                    RegistryError::Push { reference: reference.clone(), registry, source }
                }
            })?;
            pushed += 1;
            Loaded::Pushed
        };
        progress(reference, outcome);
    }
    Ok(pushed)
}

enum Refused {
    Read { path: String, source: Box<dyn std::error::Error + Send + Sync> },
    Push(OciDistributionError),
}

/// Blobs first: a registry refuses a manifest whose blobs it does not have.
async fn push(
    client: &Client,
    target: &Reference,
    (_, digest): (&str, &Sha256),
    directory: &Path,
) -> Result<(), Refused> {
    let read = |digest: &Sha256| {
        let path = oci_layout::blob(directory, digest);
        fs::read(&path)
            .map_err(|source| Refused::Read { path: path.display().to_string(), source: source.into() })
    };
    let body = read(digest)?;
    let unusable = |source: Box<dyn std::error::Error + Send + Sync>| Refused::Read {
        path: oci_layout::blob(directory, digest).display().to_string(),
        source,
    };
    let manifest = ImageManifest::from_reader(body.as_slice()).map_err(|error| unusable(error.into()))?;
    for blob in std::iter::once(manifest.config()).chain(manifest.layers()) {
        let name = blob.digest().to_string();
        let digest: Sha256 = blob
            .digest()
            .digest()
            .to_owned()
            .try_into()
            .map_err(|error: super::digest::NotADigest| unusable(error.into()))?;
        if !client.blob_exists(target, &name).await.map_err(Refused::Push)? {
            client.push_blob(target, read(&digest)?, &name).await.map_err(Refused::Push)?;
        }
    }
    let media_type = MediaType::ImageManifest
        .to_string()
        .parse()
        .map_err(|error: axum::http::header::InvalidHeaderValue| unusable(error.into()))?;
    client.push_manifest_raw(target, body, media_type).await.map_err(Refused::Push)?;
    Ok(())
}
