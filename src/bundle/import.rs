//! Copies a bundle from a node that serves it. Nothing is put into place before all of it is as its manifest says.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use futures::future::try_join_all;

use super::content::FileRecord;
use super::digest::Sha256;
use super::download::error::DownloadError;
use super::download::{DownloadLimits, Downloader, system_authorities};
use super::event::{BundleEvent, BundleEvents};
use super::manifest::{self, Bundle, BundleManifestError};
use super::signature;
use super::staging::{Staging, StagingError};
use super::worker_thread::on_worker_thread;
use crate::model::bundle_key::BundleKey;
use crate::model::parent_directory::parent_directory;
use crate::pki::https_client::authorities_in;

/// What to copy.
#[derive(Debug, Clone)]
pub struct ImportRequest {
    /// Where the bundle is served: `https://192.0.2.11:8443/bundles/1.35.4`.
    pub url: String,
    /// Absent, empty, or a bundle to replace. Files that it has already are not downloaded.
    pub output: PathBuf,
    /// The key that its manifest must be signed with.
    pub key: Option<BundleKey>,
    /// The only certificate authorities that the server is verified with, PEM; without them the system's.
    pub authorities: Option<Vec<u8>>,
    /// Limits of the downloads.
    pub downloads: DownloadLimits,
}

/// Why no bundle was copied. What was in the directory is there still; what was received is resumed.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// Neither the server nor a signature would vouch for the manifest.
    #[error("{url}: neither https nor a key that the bundle must be signed with")]
    Unverified {
        /// As given.
        url: String,
    },
    /// No certificate of an authority.
    #[error("no certificate in PEM")]
    Authorities,
    /// The server, or a file that it has.
    #[error(transparent)]
    Download(#[from] DownloadError),
    /// The manifest, or its signature.
    #[error(transparent)]
    Manifest(#[from] BundleManifestError),
    /// A file could not be written.
    #[error("cannot write {path}")]
    Write {
        /// Its path.
        path: String,
        /// From the operating system.
        source: io::Error,
    },
    /// The bundle's directory.
    #[error(transparent)]
    Staging(#[from] StagingError),
}

/// Copies the bundle and returns its manifest.
///
/// # Errors
/// The first failure.
pub async fn import(request: &ImportRequest, events: BundleEvents<'_>) -> Result<Bundle, ImportError> {
    let url = request.url.trim_end_matches('/');
    if request.key.is_none() && !url.starts_with("https://") {
        return Err(ImportError::Unverified { url: url.to_owned() });
    }
    let authorities = match &request.authorities {
        Some(pem) => authorities_in(pem).ok_or(ImportError::Authorities)?,
        None => system_authorities(),
    };
    let staging = Staging::new(&request.output)?;
    // Beside the bundle, on its file system, until the bundle is in its place: the next import after a failure begins with
    // it. Files that are complete are named by their digest.
    let name = request.output.file_name().unwrap_or_default().to_string_lossy();
    let received = parent_directory(&request.output).join(format!(".{name}.received"));
    fs::create_dir_all(&received).map_err(write(&received))?;
    let downloader = Downloader::new(&received, request.downloads, authorities, events)?;
    let copied = copy(request, url, &downloader, &received, staging.path());
    let bundle = downloader.reporting(copied).await?;
    staging.publish()?;
    fs::remove_dir_all(&received).map_err(write(&received))?;
    let size = bundle.files.values().map(|record| record.size).sum();
    events(BundleEvent::Written { directory: request.output.clone(), files: bundle.files.len(), size });
    Ok(bundle)
}

async fn copy(
    request: &ImportRequest,
    url: &str,
    downloader: &Downloader<'_>,
    received: &Path,
    into: &Path,
) -> Result<Bundle, ImportError> {
    let at = |name: &str| format!("{url}/{name}");
    let (manifest_url, signature_url) = (at(manifest::FILE_NAME), at(signature::FILE_NAME));
    let manifest = downloader.text(&manifest_url, manifest::SIZE_LIMIT).await?;
    let signature = match downloader.text(&signature_url, manifest::SIZE_LIMIT).await {
        Ok(signature) => Some(signature),
        Err(DownloadError::Status { status: 404, .. }) => None,
        Err(error) => return Err(error.into()),
    };
    if let Some(key) = &request.key {
        signature::check(&signature_url, (&manifest, signature.as_deref()), key)
            .map_err(BundleManifestError::from)?;
    }
    let bundle = Bundle::parse(&manifest_url, &manifest)?;
    for (name, text) in [(manifest::FILE_NAME, Some(&manifest)), (signature::FILE_NAME, signature.as_ref())] {
        if let Some(text) = text {
            fs::write(into.join(name), text).map_err(write(&into.join(name)))?;
        }
    }
    let present = Bundle::read(&request.output).map(|bundle| bundle.files).unwrap_or_default();
    try_join_all(bundle.files.iter().map(async |(path, record)| {
        let place = into.join(path);
        let directory = parent_directory(&place);
        fs::create_dir_all(directory).map_err(write(directory))?;
        let kept = received.join(record.sha256.as_str());
        let is_listed = present.get(path) == Some(record);
        let there = [is_listed.then(|| request.output.join(path)), kept.exists().then(|| kept.clone())];
        for there in there.into_iter().flatten() {
            if taken_over(there, record.clone(), place.clone()).await {
                return Ok(());
            }
        }
        downloader.begin().await.fetch(&at(path), &record.sha256, &kept).await?;
        // Not every file system has hard links.
        let taken = fs::hard_link(&kept, &place).or_else(|_| fs::copy(&kept, &place).and(Ok(())));
        taken.map_err(write(&place))
    }))
    .await?;
    Ok(bundle)
}

/// Whether a file that is there is whole, and is the new bundle's as well now.
async fn taken_over(present: PathBuf, expected: FileRecord, place: PathBuf) -> bool {
    let is_taken_over = move || {
        let found = Sha256::of_file(&present)?;
        Ok::<_, io::Error>(
            found == (expected.sha256, expected.size) && fs::hard_link(&present, &place).is_ok(),
        )
    };
    on_worker_thread(is_taken_over).await.unwrap_or(false)
}

fn write(path: &Path) -> impl Fn(io::Error) -> ImportError {
    let path = path.display().to_string();
    move |source| ImportError::Write { path: path.clone(), source }
}
