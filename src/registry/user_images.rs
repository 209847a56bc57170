//! Images that users add, and what the registry has.

use oci_client::Reference;

use super::archive::ImageArchive;
use super::client::RegistryClient;
use super::copy::copy;
use super::error::{RegistryError, SourceError};
use super::image_name::ImageName;
use super::image_source::ImageSource;
use super::manifest::Part;
use super::remote::RemoteImage;
use crate::bundle::digest::Sha256;

/// Where images that are added come from.
pub enum AddedImages {
    /// An archive.
    Archive(Box<ImageArchive>),
    /// Another registry.
    Remote(Box<RemoteFound>),
}

/// An image that another registry has.
pub struct RemoteFound {
    source: RemoteImage,
    root: Part,
    name: Option<ImageName>,
}

impl AddedImages {
    /// Finds an image in its own registry.
    ///
    /// # Errors
    /// When the registry cannot be reached, or has no such image for a client without credentials.
    pub async fn remote(reference: &str) -> Result<Self, RegistryError> {
        let name = reference.parse();
        let parsed: Reference = match reference.parse() {
            Ok(parsed) => parsed,
            Err(_) => return Err(super::image_name::ImageNameError::Syntax(reference.to_owned()).into()),
        };
        let found = RemoteImage::find(parsed, None).await;
        let (source, root) = found.map_err(|source| unread(reference, source))?;
        Ok(Self::Remote(Box::new(RemoteFound { source, root, name: name.ok() })))
    }

    /// The names of the images, in their order: `None` for one without a name that the registry can serve.
    pub fn names(&self) -> Vec<Option<&ImageName>> {
        match self {
            Self::Archive(archive) => archive.images.iter().map(|image| image.name.as_ref()).collect(),
            Self::Remote(remote) => vec![remote.name.as_ref()],
        }
    }

    /// Copies the images to the registry, under these names, in their order. Returns the digest of each, and whether the
    /// registry had it already under that name.
    ///
    /// # Errors
    /// The first image that cannot be read or is refused; those before it were added.
    pub async fn add(
        &self,
        registry: &RegistryClient,
        names: &[ImageName],
    ) -> Result<Vec<(Sha256, bool)>, RegistryError> {
        let (source, roots): (&dyn ImageSource, Vec<&Part>) = match self {
            Self::Archive(archive) => (&**archive, archive.images.iter().map(|image| &image.root).collect()),
            Self::Remote(remote) => (&remote.source, vec![&remote.root]),
        };
        let mut added = Vec::new();
        for (root, name) in roots.into_iter().zip(names) {
            let present = registry.digest(&name.repository, &name.tag).await;
            let present = present.map_err(|source| registry.failed(source))?.as_ref() == Some(&root.digest);
            if !present {
                copy(source, root, name, registry).await?;
            }
            added.push((root.digest.clone(), present));
        }
        Ok(added)
    }
}

/// Every image of the registry that has a tag, with its digest, in the order of names.
///
/// # Errors
/// When the registry cannot be reached.
pub async fn list(registry: &RegistryClient) -> Result<Vec<(ImageName, Sha256)>, RegistryError> {
    let failed = |source| registry.failed(source);
    let mut images = Vec::new();
    for repository in registry.repositories().await.map_err(failed)? {
        for tag in registry.tags(&repository).await.map_err(failed)? {
            if let Some(digest) = registry.digest(&repository, &tag).await.map_err(failed)? {
                images.push((ImageName { repository: repository.clone(), tag }, digest));
            }
        }
    }
    images.sort();
    Ok(images)
}

/// The digest of an image, or `None` when the registry does not have it.
///
/// # Errors
/// When the registry cannot be reached.
pub async fn digest(registry: &RegistryClient, name: &ImageName) -> Result<Option<Sha256>, RegistryError> {
    registry.digest(&name.repository, &name.tag).await.map_err(|source| registry.failed(source))
}

fn unread(reference: &str, source: SourceError) -> RegistryError {
    RegistryError::Read { reference: reference.to_owned(), part: "its manifest".to_owned(), source }
}
