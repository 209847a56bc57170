//! Binaries from a project's official artefacts.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use flate2::read::GzDecoder;

use super::component::{Architecture, Component, Download};
use super::download::{DownloadError, Downloader};

/// Why the official artefacts did not give the binaries.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// As it says.
    #[error(transparent)]
    Download(#[from] DownloadError),
    /// Its name is none that a file may have.
    #[error("{url} does not end in a file name")]
    NoFileName {
        /// The artefact.
        url: String,
    },
    /// The archive lacks a member.
    #[error("{url} does not contain {member}")]
    MemberMissing {
        /// The archive.
        url: String,
        /// Path in it.
        member: String,
    },
    /// The archive cannot be read, or a binary cannot be written.
    #[error("{url} cannot be unpacked")]
    Unpack {
        /// The archive.
        url: String,
        /// What was said.
        source: io::Error,
    },
}

/// Puts the binaries of all artefacts into `into`, mode 0755, each one checked before it is opened.
///
/// # Errors
/// The first artefact that cannot be had, is altered, or lacks a member.
pub(super) async fn fetch(
    downloader: &Downloader,
    component: &Component,
    architecture: Architecture,
    into: &Path,
) -> Result<(), ReleaseError> {
    for download in &component.sources.release {
        let url = component.expand(&download.url, architecture);
        let name = match url.rsplit('/').next() {
            Some(name) if !name.is_empty() => name,
            _ => return Err(ReleaseError::NoFileName { url }),
        };
        let expected = match (download.sha256.get(&architecture), &download.sha256_url) {
            (Some(pinned), _) => pinned.clone(),
            (None, Some(digest_url)) => {
                let digest_url = component.expand(&digest_url.replace("{url}", &url), architecture);
                downloader.published_digest(&digest_url, name).await?
            }
            (None, None) => {
                return Err(DownloadError::DigestMissing { url: url.clone(), name: name.to_owned() }.into());
            }
        };
        let artefact = into.join(".artefact");
        downloader.fetch(&url, &expected, &artefact).await?;
        let unpack = |source| ReleaseError::Unpack { url: url.clone(), source };
        match &download.binary {
            Some(binary) => fs::rename(&artefact, into.join(binary)).map_err(unpack)?,
            None => {
                let members = wanted(component, architecture, download);
                let missing = extract(&artefact, &members, into).map_err(unpack)?;
                fs::remove_file(&artefact).map_err(unpack)?;
                if let Some(member) = missing {
                    return Err(ReleaseError::MemberMissing { url, member });
                }
            }
        }
        for binary in download.binary.iter().chain(download.members.keys()) {
            fs::set_permissions(into.join(binary), fs::Permissions::from_mode(0o755)).map_err(unpack)?;
        }
    }
    Ok(())
}

/// Path in the archive → name of the binary.
fn wanted(
    component: &Component,
    architecture: Architecture,
    download: &Download,
) -> BTreeMap<String, String> {
    let member = |(binary, path): (&String, &String)| {
        let path = component.expand(path, architecture);
        (path.trim_start_matches("./").to_owned(), binary.clone())
    };
    download.members.iter().map(member).collect()
}

/// Returns one member that was not there, if any.
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
