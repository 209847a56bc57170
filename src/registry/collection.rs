//! Removes images from the registry. Their blobs remain until the registry's own `garbage-collect` has run, which
//! metalform-registry-writer.service does before it starts.

use std::collections::{BTreeMap, BTreeSet};

use super::client::RegistryClient;
use super::error::{RegistryError, RequestError};
use super::image_name::ImageName;
use super::manifest::Manifest;
use super::removal::{ImageRemoval, RepositoryImages, removal};
use crate::bundle::digest::Sha256;

/// Removes these images, and returns those whose tag is gone now. A tag that has another digest by now stays, and so does
/// a manifest that another tag needs. What is not there is no error.
///
/// # Errors
/// The first request that fails; what was removed before stays removed.
pub async fn remove(
    registry: &RegistryClient,
    images: &BTreeSet<(ImageName, Sha256)>,
) -> Result<Vec<ImageName>, RegistryError> {
    let mut removed = Vec::new();
    for (repository, unwanted) in by_repository(images) {
        let decided = decide(registry, repository, &unwanted).await?;
        // A manifest takes its tags with it, so the tags go first: a run that ends in between leaves none that leads
        // nowhere.
        for tag in &decided.tags {
            delete(registry, repository, tag).await?;
        }
        for digest in &decided.manifests {
            delete(registry, repository, &format!("sha256:{digest}")).await?;
        }
        removed.extend(names(repository, decided.tags));
    }
    Ok(removed)
}

/// The images that [`remove`] would return now. Changes nothing.
///
/// # Errors
/// The first request that fails.
pub async fn foreseen(
    registry: &RegistryClient,
    images: &BTreeSet<(ImageName, Sha256)>,
) -> Result<Vec<ImageName>, RegistryError> {
    let mut foreseen = Vec::new();
    for (repository, unwanted) in by_repository(images) {
        foreseen.extend(names(repository, decide(registry, repository, &unwanted).await?.tags));
    }
    Ok(foreseen)
}

fn by_repository(images: &BTreeSet<(ImageName, Sha256)>) -> BTreeMap<&str, BTreeSet<(String, Sha256)>> {
    let mut by_repository: BTreeMap<&str, BTreeSet<(String, Sha256)>> = BTreeMap::new();
    for (name, digest) in images {
        by_repository.entry(&name.repository).or_default().insert((name.tag.clone(), digest.clone()));
    }
    by_repository
}

fn names(repository: &str, tags: Vec<String>) -> impl Iterator<Item = ImageName> {
    tags.into_iter().map(|tag| ImageName { repository: repository.to_owned(), tag })
}

async fn delete(registry: &RegistryClient, repository: &str, name: &str) -> Result<(), RegistryError> {
    registry.delete_manifest(repository, name).await.map(drop).map_err(|source| registry.failed(source))
}

async fn decide(
    registry: &RegistryClient,
    repository: &str,
    unwanted: &BTreeSet<(String, Sha256)>,
) -> Result<ImageRemoval, RegistryError> {
    let images = observe(registry, repository, unwanted).await;
    Ok(removal(&images.map_err(|source| registry.failed(source))?, unwanted))
}

/// The tags of a repository, and what they and the unwanted images name.
async fn observe(
    registry: &RegistryClient,
    repository: &str,
    unwanted: &BTreeSet<(String, Sha256)>,
) -> Result<RepositoryImages, RequestError> {
    let mut images = RepositoryImages::default();
    for tag in registry.tags(repository).await? {
        if let Some(digest) = registry.digest(repository, &tag).await? {
            images.tags.insert(tag, digest);
        }
    }
    let mut next: Vec<Sha256> = images.tags.values().cloned().collect();
    next.extend(unwanted.iter().map(|(_, digest)| digest.clone()));
    while let Some(digest) = next.pop() {
        if images.named.contains_key(&digest) {
            continue;
        }
        let manifest = registry.manifest(repository, &format!("sha256:{digest}")).await?;
        // One that is no manifest of ours names nothing that is ours.
        let manifest = manifest.and_then(|body| Manifest::parse(&body).ok());
        let named: BTreeSet<Sha256> =
            manifest.iter().flat_map(Manifest::manifests).map(|part| part.digest.clone()).collect();
        next.extend(named.iter().cloned());
        images.named.insert(digest, named);
    }
    Ok(images)
}
