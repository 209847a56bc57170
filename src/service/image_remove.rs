//! `image remove`: takes images of users out of the registry.

use std::collections::BTreeSet;
use std::path::Path;

use super::image_store::{ImageStore, ImageStoreError, lock};
use crate::registry::image_name::ImageName;
use crate::registry::{collection, user_images};
use crate::workspace::layout::Layout;

/// Removes these images, and frees what only they had. Nodes that have pulled them keep them.
///
/// # Errors
/// When one is not in the registry, or is in a bundle; nothing was removed then.
pub async fn remove(
    (layout, socket): (&Layout, &Path),
    references: &[String],
) -> Result<Vec<ImageName>, ImageStoreError> {
    let store = ImageStore::open(layout, socket)?;
    let lock = lock(layout)?;
    let mut unwanted = BTreeSet::new();
    for reference in references {
        let name: ImageName = reference.parse().map_err(ImageStoreError::Name)?;
        store.check_not_of_bundle(&name)?;
        match user_images::digest(&store.registry, &name).await? {
            Some(digest) => unwanted.insert((name, digest)),
            None => return Err(ImageStoreError::Absent(name)),
        };
    }
    let removed = collection::remove(&store.registry, &unwanted).await?;
    store.free_blobs(&lock).await?;
    Ok(removed)
}
