//! Proves a bundle whole, and says everything that is wrong with it at once.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;

use oci_spec::image::{Descriptor, ImageManifest};

use super::apt_repository;
use super::closure::{self, Unmet};
use super::component::ComponentList;
use super::digest::Sha256;
use super::entry;
use super::manifest::{self, Bundle, FileRecord, ManifestError};
use super::oci_layout;

/// One thing that is wrong; its text is one line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Problem {
    /// A listed file is not there.
    Missing(String),
    /// A listed file has another content.
    Altered {
        /// Path in the bundle.
        path: String,
        /// What it is.
        found: String,
        /// What is listed.
        expected: String,
    },
    /// A file is not listed.
    Unlisted(String),
    /// A component has another version than the list asks for, or none.
    Version {
        /// Its name.
        component: String,
        /// In the bundle.
        found: Option<String>,
        /// In the list.
        expected: String,
    },
    /// An image of the list is not there.
    NoImage(String),
    /// A blob of an image is not there, or is not what it should be.
    Blob {
        /// The image.
        reference: String,
        /// What is missing: `manifest`, `config`, `layer`.
        part: &'static str,
        /// Its digest.
        digest: String,
    },
    /// Nothing is there for a system of the list.
    NoSystem(String),
    /// A package cannot be installed from the bundle alone.
    Unmet {
        /// The system.
        codename: String,
        /// What is missing.
        unmet: Unmet,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(path) => write!(f, "{path}: missing"),
            Self::Altered { path, found, expected } => write!(f, "{path}: is {found}, listed as {expected}"),
            Self::Unlisted(path) => write!(f, "{path}: not listed in {}", manifest::FILE_NAME),
            Self::Version { component, found: None, expected } => {
                write!(f, "component {component}: {expected} is not there")
            }
            Self::Version { component, found: Some(found), expected } => {
                write!(f, "component {component}: {found} is there, not {expected}")
            }
            Self::NoImage(reference) => write!(f, "image {reference}: not there"),
            Self::Blob { reference, part, digest } => {
                write!(f, "image {reference}: its {part} {digest} is not there")
            }
            Self::NoSystem(codename) => write!(f, "{codename}: no package index"),
            Self::Unmet { codename, unmet } => write!(f, "{codename}: {unmet}"),
        }
    }
}

/// Checks every file's digest and size, and that every component, image and package of `list` is there,
/// packages with their whole closure for each system. An empty answer is the proof.
///
/// # Errors
/// Only when there is no manifest to check against; all else is a [`Problem`].
pub fn verify(directory: &Path, list: &ComponentList) -> Result<BTreeSet<Problem>, ManifestError> {
    let bundle = Bundle::read(directory)?;
    let mut problems = files(directory, &bundle)?;
    for component in &list.components {
        let found = bundle.versions.get(&component.name);
        if found != Some(&component.version) {
            problems.insert(Problem::Version {
                component: component.name.clone(),
                found: found.cloned(),
                expected: component.version.clone(),
            });
        }
        for image in &component.images {
            let reference = component.expand(&image.reference, list.architecture);
            if !bundle.images.contains_key(&reference) {
                problems.insert(Problem::NoImage(reference));
            }
        }
    }
    for (reference, digest) in &bundle.images {
        problems.extend(image(directory, &bundle, reference, digest));
    }
    problems.extend(packages(directory, list));
    Ok(problems)
}

/// Checks every file's digest and size, and that there is no other.
///
/// # Errors
/// When the directory cannot be read.
pub fn files(directory: &Path, bundle: &Bundle) -> Result<BTreeSet<Problem>, ManifestError> {
    let found = entry::records(directory)
        .map_err(|source| ManifestError::Read { path: directory.display().to_string(), source })?;
    let describe = |record: &FileRecord| format!("{} ({} bytes)", record.sha256, record.size);
    let listed = bundle.files.iter().filter_map(|(path, expected)| match found.get(path) {
        None => Some(Problem::Missing(path.clone())),
        Some(found) if found == expected => None,
        Some(found) => {
            let (found, expected) = (describe(found), describe(expected));
            Some(Problem::Altered { path: path.clone(), found, expected })
        }
    });
    let unlisted =
        found.keys().filter(|path| *path != manifest::FILE_NAME && !bundle.files.contains_key(*path));
    Ok(listed.chain(unlisted.map(|path| Problem::Unlisted(path.clone()))).collect())
}

/// Whether each blob is a listed file, down from the manifest.
fn image(directory: &Path, bundle: &Bundle, reference: &str, digest: &Sha256) -> Vec<Problem> {
    let missing = |part, digest: &str| Problem::Blob {
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

fn packages(directory: &Path, list: &ComponentList) -> BTreeSet<Problem> {
    let own =
        list.components.iter().flat_map(|component| &component.packages).map(|package| package.name.clone());
    let own: BTreeSet<String> = own.collect();
    let mut problems = BTreeSet::new();
    for system in &list.operating_systems {
        let index = directory.join(apt_repository::packages_path(&system.codename, list.architecture));
        let Ok(index) = fs::read_to_string(index) else {
            problems.insert(Problem::NoSystem(system.codename.clone()));
            continue;
        };
        let roots = own.iter().chain(&system.packages).cloned().collect();
        let unmet = closure::unmet(&index, &roots).into_iter();
        problems.extend(unmet.map(|unmet| Problem::Unmet { codename: system.codename.clone(), unmet }));
    }
    problems
}
