//! Images of another registry, over HTTPS with the system's certificate authorities, or with one alone.
//!
//! Without credentials: an image that needs them is saved to an archive first.

use std::io;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::TryStreamExt;
use oci_client::client::{Certificate, CertificateEncoding, ClientConfig};
use oci_client::errors::OciDistributionError;
use oci_client::manifest::OciDescriptor;
use oci_client::secrets::RegistryAuth;
use oci_client::{Client, Reference};

use super::error::SourceError;
use super::image_source::{BlobStream, ImageSource, checked, verified};
use super::manifest::{LIMIT, Part, TYPES};
use crate::bundle::digest::Sha256;
use crate::pki::tls_provider::install_tls_provider;

/// Deadline of connecting.
const CONNECT: Duration = Duration::from_secs(20);
/// How long the registry may send nothing.
const SILENCE: Duration = Duration::from_secs(60);

/// An image of another registry.
pub(super) struct RemoteImage {
    client: Client,
    reference: Reference,
}

impl RemoteImage {
    /// Finds an image, and returns its manifest with it.
    /// With an authority, PEM, the registry is verified with that alone.
    pub(super) async fn find(
        reference: Reference,
        authority: Option<&[u8]>,
    ) -> Result<(Self, Part), SourceError> {
        install_tls_provider();
        let config = ClientConfig {
            connect_timeout: Some(CONNECT),
            read_timeout: Some(SILENCE),
            user_agent: concat!("metalform/", env!("CARGO_PKG_VERSION")),
            tls_certs_only: authority.map(certificate).into_iter().collect(),
            ..ClientConfig::default()
        };
        let image = Self { client: Client::new(config), reference };
        let body = image.pull(&image.reference).await?;
        let (digest, size) = (Sha256::of(&body), body.len() as u64);
        Ok((image, Part { digest, size, media_type: String::new() }))
    }

    async fn pull(&self, reference: &Reference) -> Result<Bytes, SourceError> {
        let pulled = self.client.pull_manifest_raw(reference, &RegistryAuth::Anonymous, &TYPES).await;
        let (body, _) = pulled.map_err(remote)?;
        if body.len() as u64 > LIMIT {
            return Err(SourceError::TooLarge { limit: LIMIT });
        }
        Ok(body)
    }
}

#[async_trait]
impl ImageSource for RemoteImage {
    async fn manifest(&self, part: &Part) -> Result<Bytes, SourceError> {
        let body = self.pull(&self.reference.clone_with_digest(part.name())).await?;
        checked(body, &part.digest)
    }

    async fn blob(&self, part: &Part) -> Result<BlobStream, SourceError> {
        let descriptor = OciDescriptor {
            media_type: part.media_type.clone(),
            digest: part.name(),
            size: part.size.try_into().map_err(io::Error::other)?,
            ..OciDescriptor::default()
        };
        let pulled = self.client.pull_blob_stream(&self.reference, &descriptor).await.map_err(remote)?;
        Ok(verified(Box::pin(pulled.stream.map_err(io::Error::other)), part.digest.clone()))
    }
}

fn certificate(pem: &[u8]) -> Certificate {
    Certificate { encoding: CertificateEncoding::Pem, data: pem.to_owned() }
}

fn remote(error: OciDistributionError) -> SourceError {
    SourceError::Remote(Box::new(error))
}
