//! Binaries from a project's official artefacts.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use flate2::read::GzDecoder;
use futures::future::try_join_all;

use super::component::{Component, ReleaseArtefact};
use super::digest::Sha256;
use super::download::Downloader;
use super::download::error::DownloadError;
use super::origins::Origins;
use super::worker_thread::on_worker_thread;
use crate::model::platform::Architecture;

/// Why the official artefacts did not provide the binaries.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// An artefact is unavailable or altered.
    #[error(transparent)]
    Download(#[from] DownloadError),
    /// A URL without a file name.
    #[error("{url} does not end in a file name")]
    NoFileName {
        /// Of the artefact.
        url: String,
    },
    /// An archive without a member.
    #[error("{url} does not contain {member}")]
    MemberMissing {
        /// Of the archive.
        url: String,
        /// Path in the archive.
        member: String,
    },
    /// The archive could not be read, or a binary could not be written.
    #[error("cannot unpack {url}")]
    Unpack {
        /// Of the archive.
        url: String,
        /// From the operating system.
        source: io::Error,
    },
}

/// Writes the binaries of all artefacts to `into`, mode 0755, and returns the digests of the artefacts. Each is verified
/// before it is opened.
///
/// # Errors
/// The first artefact that is unavailable or altered, or lacks a member.
pub(super) async fn fetch(
    downloader: &Downloader<'_>,
    component: &Component,
    architecture: Architecture,
    into: &Path,
) -> Result<Origins, ReleaseError> {
    let artefacts = component.sources.release.iter().enumerate();
    let fetches = artefacts.map(async |(number, source)| {
        let url = component.expand(&source.url, architecture);
        let artefact = into.join(format!(".artefact-{number}"));
        let digest = download(downloader, (component, source, &url), architecture, &artefact).await?;
        let origin = (source.url.clone(), BTreeMap::from([(architecture, digest)]));
        let members = wanted(component, architecture, source);
        let (source, into) = (source.clone(), into.to_owned());
        on_worker_thread(move || unpack(&artefact, (&source, &url), &members, &into)).await?;
        Ok::<_, ReleaseError>(origin)
    });
    let artefacts = try_join_all(fetches).await?.into_iter().collect();
    Ok(Origins { artefacts, go_sum: None })
}

async fn download(
    downloader: &Downloader<'_>,
    (component, source, url): (&Component, &ReleaseArtefact, &str),
    architecture: Architecture,
    artefact: &Path,
) -> Result<Sha256, ReleaseError> {
    let name = match url.rsplit('/').next() {
        Some(name) if !name.is_empty() => name,
        _ => return Err(ReleaseError::NoFileName { url: url.to_owned() }),
    };
    let download = downloader.begin().await;
    let expected = match (source.sha256.get(&architecture), &source.sha256_url) {
        (Some(pinned), _) => pinned.clone(),
        (None, Some(digest_url)) => {
            let digest_url = component.expand(&digest_url.replace("{url}", url), architecture);
            download.published_digest(&digest_url, name).await?
        }
        (None, None) => {
            return Err(DownloadError::DigestMissing { url: url.to_owned(), name: name.to_owned() }.into());
        }
    };
    download.fetch(url, &expected, artefact).await?;
    Ok(expected)
}

fn unpack(
    artefact: &Path,
    (source, url): (&ReleaseArtefact, &str),
    members: &BTreeMap<String, String>,
    into: &Path,
) -> Result<(), ReleaseError> {
    let unpack = |source| ReleaseError::Unpack { url: url.to_owned(), source };
    match &source.binary {
        Some(binary) => fs::rename(artefact, into.join(binary)).map_err(unpack)?,
        None => {
            let missing = extract(artefact, members, into).map_err(unpack)?;
            fs::remove_file(artefact).map_err(unpack)?;
            if let Some(member) = missing {
                return Err(ReleaseError::MemberMissing { url: url.to_owned(), member });
            }
        }
    }
    for binary in source.binary.iter().chain(source.members.keys()) {
        fs::set_permissions(into.join(binary), fs::Permissions::from_mode(0o755)).map_err(unpack)?;
    }
    Ok(())
}

/// Path in the archive → name of the binary.
fn wanted(
    component: &Component,
    architecture: Architecture,
    artefact: &ReleaseArtefact,
) -> BTreeMap<String, String> {
    let member = |(binary, path): (&String, &String)| {
        let path = component.expand(path, architecture);
        (path.trim_start_matches("./").to_owned(), binary.clone())
    };
    artefact.members.iter().map(member).collect()
}

/// Returns a missing member, if any.
fn extract(archive: &Path, members: &BTreeMap<String, String>, into: &Path) -> io::Result<Option<String>> {
    let mut left = members.clone();
    let mut archive = tar::Archive::new(GzDecoder::new(File::open(archive)?));
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.to_string_lossy().trim_start_matches("./").to_owned();
        if !entry.header().entry_type().is_file() {
            continue;
        }
        if let Some(binary) = left.remove(&path) {
            io::copy(&mut entry, &mut File::create(into.join(binary))?)?;
        }
    }
    Ok(left.into_keys().next())
}
