//! Pushes the images of a bundle to a registry on the loopback interface.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use axum::http::HeaderValue;
use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::errors::OciDistributionError;
use oci_client::manifest::OCI_IMAGE_MEDIA_TYPE;
use oci_client::secrets::RegistryAuth;
use oci_client::{Client, Reference};
use oci_spec::image::{Descriptor, ImageManifest};

use super::digest::Sha256;
use super::manifest::Bundle;
use super::oci_layout;
use crate::pki::tls_provider::install_tls_provider;

/// Why an image was not pushed.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// Pushes use HTTP without authentication, which is accepted on the loopback interface only.
    #[error("the registry {0} is not on the loopback interface")]
    NotLoopback(SocketAddr),
    /// The reference is not a valid repository name.
    #[error("image {0} is not a valid repository name")]
    Name(String),
    /// A blob of the bundle could not be read.
    #[error("image {reference}: cannot read {path}")]
    Read {
        /// The image.
        reference: String,
        /// Path of the blob.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// An invalid manifest in the bundle.
    #[error("image {reference}: invalid manifest")]
    Manifest {
        /// The image.
        reference: String,
        /// Why.
        source: oci_spec::OciSpecError,
    },
    /// A blob with another digest than SHA-256.
    #[error("image {reference}: {digest} is not a SHA-256")]
    Digest {
        /// The image.
        reference: String,
        /// As the manifest has it.
        digest: String,
    },
    /// The registry is unreachable, or refused the image.
    #[error("image {reference}: push to the registry {registry} failed")]
    Push {
        /// The image.
        reference: String,
        /// Address of the registry.
        registry: SocketAddr,
        /// From the client.
        source: OciDistributionError,
    },
}

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
    // The client is built with TLS even though it uses plain HTTP here.
    install_tls_provider();
    Client::new(ClientConfig {
        protocol: ClientProtocol::Http,
        use_monolithic_push: true,
        ..Default::default()
    })
}

fn target(reference: &str, registry: SocketAddr) -> Result<Reference, RegistryError> {
    format!("{registry}/{reference}").parse().map_err(|_| RegistryError::Name(reference.to_owned()))
}

async fn is_there(client: &Client, target: &Reference, digest: &Sha256) -> bool {
    let present = client.fetch_manifest_digest(target, &RegistryAuth::Anonymous).await;
    present.is_ok_and(|present| present == format!("sha256:{digest}"))
}

/// Pushes the [`missing`] images and reports each image to `progress`. Returns the number of pushed images. The repository
/// of an image is its full upstream name with the host: `registry.k8s.io/kube-apiserver`.
///
/// # Errors
/// The first image that is refused; those before it were pushed.
pub async fn load(
    directory: &Path,
    bundle: &Bundle,
    registry: SocketAddr,
    progress: &(dyn Fn(&str, Loaded) + Send + Sync),
) -> Result<usize, RegistryError> {
    if !registry.ip().is_loopback() {
        return Err(RegistryError::NotLoopback(registry));
    }
    let loader = Loader { client: client(), directory, registry };
    let mut pushed = 0;
    for (reference, digest) in &bundle.images {
        let loaded = loader.load(reference, digest).await?;
        pushed += usize::from(loaded == Loaded::Pushed);
        progress(reference, loaded);
    }
    Ok(pushed)
}

struct Loader<'a> {
    client: Client,
    directory: &'a Path,
    registry: SocketAddr,
}

impl Loader<'_> {
    async fn load(&self, reference: &str, digest: &Sha256) -> Result<Loaded, RegistryError> {
        let target = target(reference, self.registry)?;
        if is_there(&self.client, &target, digest).await {
            return Ok(Loaded::AlreadyThere);
        }
        let body = self.read(reference, digest)?;
        let manifest = ImageManifest::from_reader(body.as_slice())
            .map_err(|source| RegistryError::Manifest { reference: reference.to_owned(), source })?;
        // A registry refuses a manifest whose blobs it does not have.
        for blob in std::iter::once(manifest.config()).chain(manifest.layers()) {
            self.push_blob(&target, reference, blob).await?;
        }
        let media_type = HeaderValue::from_static(OCI_IMAGE_MEDIA_TYPE);
        let pushed = self.client.push_manifest_raw(&target, body, media_type).await;
        pushed.map_err(|source| self.refused(reference, source))?;
        Ok(Loaded::Pushed)
    }

    async fn push_blob(
        &self,
        target: &Reference,
        reference: &str,
        blob: &Descriptor,
    ) -> Result<(), RegistryError> {
        let name = blob.digest().to_string();
        let there = self.client.blob_exists(target, &name).await;
        if there.map_err(|source| self.refused(reference, source))? {
            return Ok(());
        }
        let digest = blob.digest().digest().parse();
        let digest = digest
            .map_err(|_| RegistryError::Digest { reference: reference.to_owned(), digest: name.clone() })?;
        let pushed = self.client.push_blob(target, self.read(reference, &digest)?, &name).await;
        pushed.map(|_| ()).map_err(|source| self.refused(reference, source))
    }

    fn read(&self, reference: &str, digest: &Sha256) -> Result<Vec<u8>, RegistryError> {
        let path = oci_layout::blob(self.directory, digest);
        fs::read(&path).map_err(|source| RegistryError::Read {
            reference: reference.to_owned(),
            path: path.display().to_string(),
            source,
        })
    }

    fn refused(&self, reference: &str, source: OciDistributionError) -> RegistryError {
        RegistryError::Push { reference: reference.to_owned(), registry: self.registry, source }
    }
}
