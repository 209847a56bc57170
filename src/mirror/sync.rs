//! Makes a mirror what its origin is.
//!
//! # Guarantees
//! - What is added comes before what is removed, and a bundle before the indexes that refer to it.
//! - A bundle is replaced in one rename, once all of it is there and verified; an index likewise. An image's tag comes last.
//! - What the mirror says that it has is what was found on its disk and in its registry at the end. It says so once it has
//!   every bundle and every index, and each image that can be copied.
//! - An image that cannot be copied keeps no other from being copied or removed.
//! - A sync that fails, or is killed, has removed nothing that the origin has, and the next one goes on from there.
//! - An image that the origin does not have is removed when that has been so for [`contents::KEPT`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::contents::{self, MirrorContents, MirrorItem};
use super::directory::{MirrorDirectory, file_digests, names};
use super::origin::{Origin, OriginError};
use crate::bundle::digest::Sha256;
use crate::bundle::download::DownloadLimits;
use crate::bundle::event::BundleEvents;
use crate::bundle::import::{ImportError, ImportRequest, import};
use crate::bundle::manifest::is_in_bundle;
use crate::model::error_chain::error_chain;
use crate::registry::client::RegistryClient;
use crate::registry::collection;
use crate::registry::error::RegistryError;
use crate::registry::image_name::ImageName;
use crate::registry::mirrored_image::{ImageServer, mirror};
use crate::registry::{bundle_images, user_images};
use crate::workspace::atomic_file::{self, FileError};

/// Mode of what every host may read.
const PUBLIC: u32 = 0o644;

/// What to copy, and where to.
pub struct SyncRequest {
    /// URL of the server to copy: `https://10.0.0.1:8443`.
    pub origin: String,
    /// The only certificate authority that it is verified with, PEM.
    pub authority: Vec<u8>,
    /// Of this mirror.
    pub directory: MirrorDirectory,
    /// Socket of this node's registry that accepts writes.
    pub registry: PathBuf,
    /// Limits of the downloads.
    pub downloads: DownloadLimits,
    /// The clock.
    pub clock: fn() -> Timestamp,
}

/// What was changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Synced {
    /// Bundles, indexes and images that were copied.
    pub copied: Vec<MirrorItem>,
    /// Those that the origin no longer has.
    pub removed: Vec<MirrorItem>,
    /// Why an image was not copied; each names its image.
    pub failed: Vec<String>,
}

/// Why a mirror is not whole.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// The origin does not answer.
    #[error(transparent)]
    Origin(#[from] OriginError),
    /// The origin names something that would be outside of the mirror's directory.
    #[error("{url}: {name:?} is not a name on a server of packages and images")]
    Name {
        /// Of the origin.
        url: String,
        /// As it was answered.
        name: String,
    },
    /// A bundle.
    #[error(transparent)]
    Import(Box<ImportError>),
    /// An index that the origin has replaced meanwhile; the next sync copies it.
    #[error("{url}: its content has the digest {found}")]
    Altered {
        /// Of the index.
        url: String,
        /// `sha256:...`
        found: Sha256,
    },
    /// An image.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// A file of this mirror.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file, or its directory.
        path: PathBuf,
        /// From the operating system.
        source: io::Error,
    },
    /// A file of this mirror.
    #[error(transparent)]
    Write(#[from] FileError),
}

impl From<ImportError> for SyncError {
    fn from(error: ImportError) -> Self {
        Self::Import(Box::new(error))
    }
}

/// Copies what this mirror lacks, and removes what the origin no longer has.
///
/// # Errors
/// The first failure; those of images are in the result.
pub async fn sync(request: &SyncRequest, events: BundleEvents<'_>) -> Result<Synced, SyncError> {
    let origin = Origin::new(&request.origin, &request.authority)?;
    let wanted = origin.contents().await?;
    check_names(&origin, &wanted)?;
    let job = Sync { request, origin, registry: RegistryClient::at(&request.registry)? };
    let before = MirrorContents { surplus: job.recorded_surplus(), ..job.held().await? };
    let mut synced = Synced::default();
    for lacking in before.lacks_of(&wanted) {
        match &lacking {
            MirrorItem::Bundle(version) => job.copy_bundle(version, events).await?,
            MirrorItem::Index(path) => job.copy_index(path, &wanted).await?,
            // Most come with the bundles, below.
            MirrorItem::Image(_) => {}
        }
        synced.copied.push(lacking);
    }
    for version in wanted.bundles.keys() {
        bundle_images::load_of(&request.directory.bundles().join(version), &job.registry).await?;
    }
    for lacking in job.images().await?.lacks_of(&images_of(&wanted)) {
        let MirrorItem::Image(name) = &lacking else { continue };
        if let Err(error) = job.copy_image(name, &wanted).await {
            // Of an origin that is off, no image is tried any more.
            job.origin.contents().await?;
            synced.failed.push(error_chain(&error));
            synced.copied.retain(|copied| *copied != lacking);
        }
    }
    let now = (request.clock)();
    let (due, surplus) = before
        .surplus_to(&wanted, now)
        .into_iter()
        .partition(|(_, since)| now.duration_since(*since) >= contents::KEPT);
    synced.removed = job.remove(&before, &wanted, &due).await?;
    let contents = MirrorContents { surplus, synced: Some(now), ..job.held().await? };
    let json = serde_json::to_vec(&contents)
        .map_err(|error| SyncError::Read { path: request.directory.contents(), source: error.into() })?;
    atomic_file::write(&request.directory.contents(), &json, PUBLIC)?;
    Ok(synced)
}

struct Sync<'a> {
    request: &'a SyncRequest,
    origin: Origin,
    registry: RegistryClient,
}

impl Sync<'_> {
    /// What is on this mirror.
    async fn held(&self) -> Result<MirrorContents, SyncError> {
        let directory = &self.request.directory;
        let failed = |path: PathBuf| move |source| SyncError::Read { path, source };
        Ok(MirrorContents {
            bundles: directory.whole_bundles().map_err(failed(directory.bundles()))?,
            indexes: file_digests(&directory.indexes()).map_err(failed(directory.indexes()))?,
            ..self.images().await?
        })
    }

    /// As the last sync noted it. Where that cannot be read, the time begins again.
    fn recorded_surplus(&self) -> BTreeMap<String, Timestamp> {
        let recorded = fs::read(self.request.directory.contents()).unwrap_or_default();
        let recorded: Option<MirrorContents> = serde_json::from_slice(&recorded).ok();
        recorded.unwrap_or_default().surplus
    }

    /// Of these, the images.
    async fn images(&self) -> Result<MirrorContents, SyncError> {
        let listed = user_images::list(&self.registry).await?;
        let images = listed.into_iter().map(|(name, digest)| (name.to_string(), digest)).collect();
        Ok(MirrorContents { images, ..MirrorContents::default() })
    }

    async fn copy_bundle(&self, version: &str, events: BundleEvents<'_>) -> Result<(), SyncError> {
        let bundles = self.request.directory.bundles();
        fs::create_dir_all(&bundles).map_err(|source| SyncError::Read { path: bundles.clone(), source })?;
        let request = ImportRequest {
            url: self.origin.url(&format!("bundles/{version}")),
            output: bundles.join(version),
            // The origin vouches for it: it is what every host trusts.
            key: None,
            authorities: Some(self.request.authority.clone()),
            downloads: self.request.downloads,
        };
        import(&request, events).await?;
        Ok(())
    }

    async fn copy_index(&self, path: &str, wanted: &MirrorContents) -> Result<(), SyncError> {
        let content = self.origin.get(path).await?;
        let found = Sha256::of(&content);
        if wanted.indexes.get(path) != Some(&found) {
            return Err(SyncError::Altered { url: self.origin.url(path), found });
        }
        Ok(atomic_file::write(&self.request.directory.indexes().join(path), &content, PUBLIC)?)
    }

    async fn copy_image(&self, name: &str, wanted: &MirrorContents) -> Result<(), SyncError> {
        let origin = ImageServer { url: &self.request.origin, authority: &self.request.authority };
        match (ImageName::complete(name), wanted.images.get(name)) {
            (Ok(name), Some(digest)) => Ok(mirror(origin, &name, digest, &self.registry).await?),
            (Err(error), _) => Err(RegistryError::from(error).into()),
            (_, None) => Ok(()),
        }
    }

    /// What the origin had once; of the images, those with these names.
    async fn remove(
        &self,
        before: &MirrorContents,
        wanted: &MirrorContents,
        due: &BTreeMap<String, Timestamp>,
    ) -> Result<Vec<MirrorItem>, SyncError> {
        let directory = &self.request.directory;
        let mut removed = Vec::new();
        for path in before.indexes.keys().filter(|path| !wanted.indexes.contains_key(*path)) {
            atomic_file::remove(&directory.indexes().join(path))?;
            removed.push(MirrorItem::Index(path.clone()));
        }
        let bundles = directory.bundles();
        let present = names(&bundles).map_err(|source| SyncError::Read { path: bundles.clone(), source })?;
        for version in present.into_iter().filter(|version| !wanted.bundles.contains_key(version)) {
            remove_directory(&bundles.join(&version))?;
            removed.push(MirrorItem::Bundle(version));
        }
        let obsolete: Result<BTreeSet<_>, RegistryError> = before
            .images
            .iter()
            .filter(|(name, _)| due.contains_key(*name))
            .map(|(name, digest)| Ok((ImageName::complete(name)?, digest.clone())))
            .collect();
        let images = collection::remove(&self.registry, &obsolete?).await?;
        removed.extend(images.iter().map(|name| MirrorItem::Image(name.to_string())));
        Ok(removed)
    }
}

fn images_of(contents: &MirrorContents) -> MirrorContents {
    MirrorContents { images: contents.images.clone(), ..MirrorContents::default() }
}

fn remove_directory(path: &Path) -> Result<(), SyncError> {
    fs::remove_dir_all(path).map_err(|source| SyncError::Read { path: path.to_owned(), source })
}

/// The origin is trusted with the content of packages, not with the paths of this node.
fn check_names(origin: &Origin, contents: &MirrorContents) -> Result<(), SyncError> {
    let is_version = |name: &&String| is_in_bundle(name) && !name.contains('/') && !name.starts_with('.');
    let is_index = |path: &&String| is_in_bundle(path) && path.starts_with("bundles/");
    let bad = contents.bundles.keys().find(|name| !is_version(name));
    match bad.or_else(|| contents.indexes.keys().find(|path| !is_index(path))) {
        Some(name) => Err(SyncError::Name { url: origin.url(""), name: name.clone() }),
        None => Ok(()),
    }
}
