//! An image of the registry of another node, as that node serves it to hosts.

use oci_client::Reference;

use super::client::RegistryClient;
use super::copy::copy;
use super::error::{RegistryError, SourceError};
use super::image_name::{ImageName, ImageNameError};
use super::remote::RemoteImage;
use crate::bundle::digest::Sha256;

/// The server that has it.
#[derive(Debug, Clone, Copy)]
pub struct ImageServer<'a> {
    /// `https://10.0.0.1:8443`.
    pub url: &'a str,
    /// The only certificate authority that it is verified with, PEM.
    pub authority: &'a [u8],
}

/// Copies the image with this name and digest into the registry of this node, under the same name.
///
/// # Errors
/// When the server has no such image, or the registry refuses it.
pub async fn mirror(
    origin: ImageServer<'_>,
    name: &ImageName,
    digest: &Sha256,
    registry: &RegistryClient,
) -> Result<(), RegistryError> {
    let host = origin.url.trim_start_matches("https://").trim_end_matches('/');
    let text = format!("{host}/{}@sha256:{digest}", name.repository);
    let reference: Reference = text.parse().map_err(|_| ImageNameError::Syntax(text.clone()))?;
    let unread = |source| RegistryError::Read {
        reference: name.to_string(),
        part: format!("sha256:{digest}"),
        source,
    };
    let (image, root) = RemoteImage::find(reference, Some(origin.authority)).await.map_err(unread)?;
    if root.digest != *digest {
        return Err(unread(SourceError::Altered { found: root.name() }));
    }
    copy(&image, &root, name, registry).await
}
