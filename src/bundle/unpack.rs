//! Makes a bundle of an archive of [`super::pack`]. Nothing is put into place before all of it is as its manifest says.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::Path;

use tar::Archive;

use super::digest::{CopyError, Sha256};
use super::manifest::{self, Bundle, BundleManifestError};
use super::signature;
use super::staging::{Staging, StagingError};
use crate::model::bundle_key::BundleKey;

/// Why an archive was refused. What was in the directory is there still.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// The archive cannot be read to its end.
    #[error("{archive} is not a whole archive of a bundle")]
    Archive {
        /// Path of the archive.
        archive: String,
        /// From the operating system, or the format.
        source: io::Error,
    },
    /// The archive does not begin with the manifest.
    #[error("{archive} does not begin with {}", manifest::FILE_NAME)]
    NoManifest {
        /// Path of the archive.
        archive: String,
    },
    /// The manifest, or its signature.
    #[error(transparent)]
    Manifest(#[from] BundleManifestError),
    /// An entry that the manifest does not have, is no file, or comes twice.
    #[error("{archive}: {path:?} is not in {}, or comes twice", manifest::FILE_NAME)]
    Unlisted {
        /// Path of the archive.
        archive: String,
        /// As written.
        path: String,
    },
    /// An entry with another content than in the manifest.
    #[error("{archive}: {path} has SHA-256 {found}, expected {expected}")]
    Altered {
        /// Path of the archive.
        archive: String,
        /// In the bundle.
        path: String,
        /// Of the entry.
        found: Sha256,
        /// In the manifest.
        expected: Sha256,
    },
    /// A file of the manifest that does not come.
    #[error("{archive}: {path} is missing")]
    Missing {
        /// Path of the archive.
        archive: String,
        /// In the bundle.
        path: String,
    },
    /// A file could not be written.
    #[error("cannot write {path}")]
    Write {
        /// In the bundle.
        path: String,
        /// From the operating system.
        source: io::Error,
    },
    /// The bundle's directory.
    #[error(transparent)]
    Staging(#[from] StagingError),
}

/// Makes the bundle of `archive` in `output`: absent, empty, or a bundle to replace. With a key, its manifest must be signed
/// with it.
///
/// # Errors
/// The first thing that is not as it should be.
pub fn unpack(archive: &Path, output: &Path, key: Option<&BundleKey>) -> Result<Bundle, UnpackError> {
    let name = archive.display().to_string();
    let broken = |source| UnpackError::Archive { archive: name.clone(), source };
    let staging = Staging::new(output)?;
    let mut tar = Archive::new(BufReader::with_capacity(1 << 20, File::open(archive).map_err(broken)?));
    let mut entries = tar.entries().map_err(broken)?;
    let mut texts = BTreeMap::new();
    for entry in entries.by_ref().take(2) {
        let mut entry = entry.map_err(broken)?;
        let path = path_of(&entry).map_err(broken)?;
        if ![signature::FILE_NAME, manifest::FILE_NAME].contains(&path.as_str()) {
            break;
        }
        let is_manifest = path == manifest::FILE_NAME;
        texts.insert(path, text(&mut entry).map_err(broken)?);
        if is_manifest {
            break;
        }
    }
    let bundle = parse(&name, &texts, key)?;
    for (path, text) in &texts {
        let write = |source| UnpackError::Write { path: path.clone(), source };
        fs::write(staging.path().join(path), text).map_err(write)?;
    }
    let mut left: BTreeSet<&str> = bundle.files.keys().map(String::as_str).collect();
    for entry in entries {
        let mut entry = entry.map_err(broken)?;
        let path = path_of(&entry).map_err(broken)?;
        let record = bundle.files.get(&path).filter(|_| entry.header().entry_type().is_file());
        let Some(record) = record.filter(|_| left.remove(path.as_str())) else {
            return Err(UnpackError::Unlisted { archive: name, path });
        };
        let size = entry.size();
        let found = match write(&mut entry, &staging.path().join(&path)) {
            Ok((found, copied)) if copied == size => found,
            Ok(_) => return Err(broken(io::ErrorKind::UnexpectedEof.into())),
            Err(CopyError::Read(source)) => return Err(broken(source)),
            Err(CopyError::Write(source)) => return Err(UnpackError::Write { path, source }),
        };
        if found != record.sha256 {
            let expected = record.sha256.clone();
            return Err(UnpackError::Altered { archive: name, path, found, expected });
        }
    }
    if let Some(path) = left.first() {
        return Err(UnpackError::Missing { archive: name, path: (*path).to_owned() });
    }
    staging.publish()?;
    Ok(bundle)
}

fn parse(
    archive: &str,
    texts: &BTreeMap<String, String>,
    key: Option<&BundleKey>,
) -> Result<Bundle, UnpackError> {
    let Some(manifest) = texts.get(manifest::FILE_NAME) else {
        return Err(UnpackError::NoManifest { archive: archive.to_owned() });
    };
    if let Some(key) = key {
        let signature = texts.get(signature::FILE_NAME).map(String::as_str);
        signature::check(&format!("{archive}: {}", signature::FILE_NAME), (manifest, signature), key)
            .map_err(BundleManifestError::from)?;
    }
    Ok(Bundle::parse(&format!("{archive}: {}", manifest::FILE_NAME), manifest)?)
}

fn text(entry: &mut tar::Entry<'_, impl Read>) -> io::Result<String> {
    let mut text = String::new();
    let size = entry.size();
    entry.take(manifest::SIZE_LIMIT).read_to_string(&mut text)?;
    if text.len() as u64 == size { Ok(text) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn path_of(entry: &tar::Entry<'_, impl Read>) -> io::Result<String> {
    Ok(entry.path()?.to_string_lossy().into_owned())
}

fn write(entry: &mut impl Read, path: &Path) -> Result<(Sha256, u64), CopyError> {
    path.parent().map_or(Ok(()), fs::create_dir_all).map_err(CopyError::Write)?;
    let mut file = File::create_new(path).map_err(CopyError::Write)?;
    Sha256::of_copy(entry, &mut file)
}
