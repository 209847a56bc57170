//! Verifies that a bundle is complete and unaltered, and reports all problems at once.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use oci_spec::image::{Descriptor, ImageManifest};

use super::component::ComponentList;
use super::content::FileRecord;
use super::digest::Sha256;
use super::file_records::file_records;
use super::format::{self, Unmet};
use super::manifest::{self, Bundle, BundleManifestError};
use super::{oci_layout, signature};
use crate::model::bundle_key::BundleKey;
use crate::model::platform::{Architecture, Platform};

/// A problem of a bundle. Displays as one line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum BundleProblem {
    /// A file in the manifest that does not exist.
    Missing(String),
    /// A file with another content than in the manifest.
    Altered {
        /// Path in the bundle.
        path: String,
        /// Digest and size of the file.
        found: String,
        /// Digest and size in the manifest.
        expected: String,
    },
    /// A file that is not in the manifest.
    Unlisted(String),
    /// A component that is missing, or has another version than in the list.
    Version {
        /// Name of the component.
        component: String,
        /// In the bundle.
        found: Option<String>,
        /// In the list.
        expected: String,
    },
    /// An image of the list that is missing.
    NoImage(String),
    /// A blob of an image that is missing or altered.
    Blob {
        /// Of the image.
        reference: String,
        /// `manifest`, `config` or `layer`.
        part: &'static str,
        /// `sha256:` and the digits.
        digest: String,
    },
    /// A platform of the list without packages.
    NoPlatform(Platform),
    /// A package that cannot be installed from the bundle alone.
    Unmet {
        /// The hosts' platform.
        platform: Platform,
        /// The missing dependency.
        unmet: Unmet,
    },
}

impl fmt::Display for BundleProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(path) => write!(f, "{path}: missing"),
            Self::Altered { path, found, expected } => {
                write!(f, "{path}: found {found}, expected {expected}")
            }
            Self::Unlisted(path) => write!(f, "{path}: not in {}", manifest::FILE_NAME),
            Self::Version { component, found: None, expected } => {
                write!(f, "component {component}: missing, expected {expected}")
            }
            Self::Version { component, found: Some(found), expected } => {
                write!(f, "component {component}: found {found}, expected {expected}")
            }
            Self::NoImage(reference) => write!(f, "image {reference}: missing"),
            Self::Blob { reference, part, digest } => {
                write!(f, "image {reference}: missing {part} {digest}")
            }
            Self::NoPlatform(platform) => write!(f, "{platform}: no package index"),
            Self::Unmet { platform, unmet } => write!(f, "{platform}: {unmet}"),
        }
    }
}

/// Checks the digest and size of every file, and that the bundle contains every component, image and package of
/// `list`, packages with their dependency closure for each platform. No problem means that the bundle is complete.
///
/// # Errors
/// Only without a manifest, or without its signature by `key`; everything else is a [`BundleProblem`].
pub fn verify(
    directory: &Path,
    list: &ComponentList,
    key: Option<&BundleKey>,
) -> Result<BTreeSet<BundleProblem>, BundleManifestError> {
    let bundle = Bundle::read_signed(directory, key)?;
    let mut problems = files(directory, &bundle)?;
    for component in &list.components {
        let found = bundle.versions.get(&component.name);
        if found != Some(&component.version) {
            problems.insert(BundleProblem::Version {
                component: component.name.clone(),
                found: found.cloned(),
                expected: component.version.clone(),
            });
        }
        let references = |architecture: &Architecture| {
            let images = component.images.iter();
            images.map(|image| component.expand(&image.reference, *architecture)).collect::<Vec<_>>()
        };
        let references = list.architectures.iter().flat_map(references);
        let missing = references.filter(|reference| !bundle.images.contains_key(reference));
        problems.extend(missing.map(BundleProblem::NoImage));
    }
    for (reference, digest) in &bundle.images {
        problems.extend(image(directory, &bundle, reference, digest));
    }
    problems.extend(packages(directory, list));
    Ok(problems)
}

/// Checks the digest and size of every file in the manifest, and that there is no other file.
///
/// # Errors
/// When the directory cannot be read.
pub fn files(directory: &Path, bundle: &Bundle) -> Result<BTreeSet<BundleProblem>, BundleManifestError> {
    let found = file_records(directory)
        .map_err(|source| BundleManifestError::Read { path: directory.display().to_string(), source })?;
    let describe = |record: &FileRecord| format!("{} ({} bytes)", record.sha256, record.size);
    let listed = bundle.files.iter().filter_map(|(path, expected)| match found.get(path) {
        None => Some(BundleProblem::Missing(path.clone())),
        Some(found) if found == expected => None,
        Some(found) => {
            let (found, expected) = (describe(found), describe(expected));
            Some(BundleProblem::Altered { path: path.clone(), found, expected })
        }
    });
    let own = [manifest::FILE_NAME, signature::FILE_NAME];
    let unlisted =
        found.keys().filter(|path| !own.contains(&path.as_str()) && !bundle.files.contains_key(*path));
    Ok(listed.chain(unlisted.map(|path| BundleProblem::Unlisted(path.clone()))).collect())
}

/// Checks the blobs of an image, from its manifest on.
fn image(directory: &Path, bundle: &Bundle, reference: &str, digest: &Sha256) -> Vec<BundleProblem> {
    let missing = |part, digest: &str| BundleProblem::Blob {
        reference: reference.to_owned(),
        part,
        digest: format!("sha256:{digest}"),
    };
    let Ok(manifest) = ImageManifest::from_file(oci_layout::blob(directory, digest)) else {
        return vec![missing("manifest", digest.as_str())];
    };
    let is_listed = |blob: &Descriptor| {
        let digest = blob.as_digest_sha256().and_then(|digest| digest.parse().ok());
        let listed = digest.and_then(|digest| bundle.files.get(&oci_layout::blob_path(&digest)));
        listed.is_some_and(|record| record.size == blob.size())
    };
    let blobs =
        std::iter::once(("config", manifest.config())).chain(manifest.layers().iter().map(|l| ("layer", l)));
    let unlisted = blobs.filter(|(_, blob)| !is_listed(blob));
    unlisted.map(|(part, blob)| missing(part, blob.digest().digest())).collect()
}

fn packages(directory: &Path, list: &ComponentList) -> BTreeSet<BundleProblem> {
    let own =
        list.components.iter().flat_map(|component| &component.packages).map(|package| package.name.clone());
    let own: BTreeSet<String> = own.collect();
    let mut problems = BTreeSet::new();
    for system in &list.operating_systems {
        let roots = own.iter().chain(&system.packages).cloned().collect();
        for platform in system.platforms(&list.architectures) {
            let unmet = format::of_platform(&platform)
                .and_then(|format| format.unmet(&directory.join(format.directory()), &platform, &roots));
            let Some(unmet) = unmet else {
                problems.insert(BundleProblem::NoPlatform(platform));
                continue;
            };
            problems.extend(
                unmet.into_iter().map(|unmet| BundleProblem::Unmet { platform: platform.clone(), unmet }),
            );
        }
    }
    problems
}
