//! Removes from the registry what earlier bundles brought and no bundle of the configuration has any more.
//!
//! # Guarantees
//! - An image that no bundle brought is never removed, and neither is one whose tag was given to another image since.
//! - What bundles bring is recorded before it is loaded, and forgotten after it was removed: a run that is killed in
//!   between is completed by the next one.

use std::collections::BTreeSet;
use std::path::Path;

use super::image_store::{ImageStoreError, lock};
use super::registry_writer;
use crate::bundle::cluster_bundles::ClusterBundles;
use crate::bundle::digest::Sha256;
use crate::registry::client::RegistryClient;
use crate::registry::collection;
use crate::registry::error::RegistryError;
use crate::registry::image_name::ImageName;
use crate::workspace::atomic_file::FileError;
use crate::workspace::bundle_image_record::BundleImageRecord;
use crate::workspace::layout::Layout;

/// Records what the bundles bring, before it is loaded.
///
/// # Errors
/// When the record cannot be read or written.
pub fn record(layout: &Layout, bundles: &ClusterBundles) -> Result<(), FileError> {
    let before = BundleImageRecord::read(layout)?;
    let record = before.clone().with(images(bundles));
    if record == before { Ok(()) } else { record.write(layout) }
}

/// Removes what no bundle has any more, and returns the images whose tags are gone. Where there is nothing to remove, the
/// registry is not connected to.
///
/// # Errors
/// When another process changes images, or the registry fails; the next bootstrap tries again.
pub async fn collect(
    (layout, socket): (&Layout, &Path),
    bundles: &ClusterBundles,
) -> Result<Vec<ImageName>, ImageStoreError> {
    let unwanted = unwanted(layout, bundles)?;
    if unwanted.is_empty() {
        return Ok(Vec::new());
    }
    let _lock = lock(layout)?;
    let removed = collection::remove(&RegistryClient::at(socket)?, &unwanted).await?;
    registry_writer::restart(socket).await?;
    BundleImageRecord::default().with(images(bundles)).write(layout)?;
    Ok(removed)
}

/// The images that [`collect`] would remove now. Changes nothing.
///
/// # Errors
/// When the registry fails.
pub async fn foreseen(
    (layout, socket): (&Layout, &Path),
    bundles: &ClusterBundles,
) -> Result<Vec<ImageName>, ImageStoreError> {
    let unwanted = unwanted(layout, bundles)?;
    if unwanted.is_empty() {
        return Ok(Vec::new());
    }
    Ok(collection::foreseen(&RegistryClient::at(socket)?, &unwanted).await?)
}

fn unwanted(
    layout: &Layout,
    bundles: &ClusterBundles,
) -> Result<BTreeSet<(ImageName, Sha256)>, ImageStoreError> {
    let present = BundleImageRecord::default().with(images(bundles));
    let obsolete = BundleImageRecord::read(layout)?.without(&present);
    let named =
        obsolete.into_iter().map(|(reference, digest)| Ok((ImageName::complete(&reference)?, digest)));
    Ok(named.collect::<Result<_, RegistryError>>()?)
}

fn images(bundles: &ClusterBundles) -> impl Iterator<Item = (&String, &Sha256)> {
    bundles.all().flat_map(|bundle| &bundle.manifest.images)
}
