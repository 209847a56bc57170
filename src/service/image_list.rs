//! `image list`: the images of the registry.

use std::path::Path;

use serde::Serialize;

use super::image_store::{ImageStore, ImageStoreError};
use crate::registry::user_images;
use crate::workspace::layout::Layout;

/// An image of the registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedImage {
    /// Its name.
    pub image: String,
    /// `sha256:...`
    pub digest: String,
    /// The version of Kubernetes of the bundle that has it; of an image of a user absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
}

/// Lists them, in the order of names.
///
/// # Errors
/// When the registry or the bundles cannot be read.
pub async fn list(layout: &Layout, socket: &Path) -> Result<Vec<ListedImage>, ImageStoreError> {
    let store = ImageStore::open(layout, socket)?;
    let images = user_images::list(&store.registry).await?;
    let listed = images.into_iter().map(|(name, digest)| {
        let image = name.to_string();
        let bundle = store.bundles.with_image(&image).map(|bundle| bundle.kubernetes.clone());
        ListedImage { image, digest: format!("sha256:{digest}"), bundle }
    });
    Ok(listed.collect())
}
