//! Verifies that a bundle is complete and unaltered, and reports all problems at once.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use oci_spec::image::Descriptor;

use super::component::ComponentList;
use super::component_list;
use super::content::FileRecord;
use super::digest::Sha256;
use super::file_records::file_records;
use super::format;
use super::manifest::{self, Bundle, BundleManifestError};
use super::problem::BundleProblem;
use super::{oci_layout, signature};
use crate::model::bundle_key::BundleKey;
use crate::model::platform::Platform;
use crate::state::BundleNeed;

/// Checks the digest and size of every file, and that the bundle contains every component, image and package of
/// `list`, packages with their dependency closure for each platform. `None` is the list that it was built from. No problem
/// means that the bundle is complete: for hosts, with what states ask for (`needs`).
///
/// # Errors
/// Only without a manifest, or without its signature by `key`; everything else is a [`BundleProblem`].
pub fn verify(
    directory: &Path,
    list: Option<&ComponentList>,
    needs: &BTreeMap<BundleNeed, String>,
    key: Option<&BundleKey>,
) -> Result<BTreeSet<BundleProblem>, BundleManifestError> {
    let bundle = Bundle::read_signed(directory, key)?;
    let mut problems = files(directory, &bundle)?;
    let list = match list {
        Some(list) => Some(list.clone()),
        None => own_list(directory, &bundle, &problems)?,
    };
    if let Some(list) = list {
        problems.extend(components(directory, &bundle, &list));
        let unknown = platforms_with_damaged_indexes(&bundle, &problems);
        problems.extend(packages(directory, &list, &unknown));
    }
    for (reference, digest) in &bundle.images {
        problems.extend(image(directory, &bundle, reference, digest));
    }
    problems.extend(unmet_needs(&bundle, needs));
    Ok(problems)
}

/// The list that the bundle was built from. `None` where its file is damaged, which was reported; the built-in one where the
/// bundle is older than such files.
fn own_list(
    directory: &Path,
    bundle: &Bundle,
    problems: &BTreeSet<BundleProblem>,
) -> Result<Option<ComponentList>, BundleManifestError> {
    let name = component_list::FILE_NAME;
    if problems.iter().any(|problem| problem.path() == Some(name)) {
        return Ok(None);
    }
    let path = directory.join(name);
    let file = path.display().to_string();
    let text = match bundle.files.contains_key(name) {
        false => component_list::SHIPPED.to_owned(),
        true => fs::read_to_string(&path)
            .map_err(|source| BundleManifestError::Read { path: file.clone(), source })?,
    };
    component_list::parse(&file, &text).map(Some).map_err(BundleManifestError::Syntax)
}

fn components(directory: &Path, bundle: &Bundle, list: &ComponentList) -> BTreeSet<BundleProblem> {
    let mut problems = BTreeSet::new();
    for component in &list.components {
        let found = bundle.versions.get(&component.name);
        if found != Some(&component.version) {
            problems.insert(BundleProblem::Version {
                component: component.name.clone(),
                found: found.cloned(),
                expected: component.version.clone(),
            });
        }
        for (image, architecture) in component
            .images
            .iter()
            .flat_map(|image| list.architectures.iter().map(move |architecture| (image, *architecture)))
        {
            let reference = component.expand(&image.reference, architecture);
            let Some(digest) = bundle.images.get(&reference) else {
                problems.insert(BundleProblem::NoImage(reference));
                continue;
            };
            // Files that cannot be read are reported as such.
            let of = oci_layout::architectures(directory, digest);
            if of.is_ok_and(|of| !of.contains(architecture.as_str())) {
                problems.insert(BundleProblem::NoImage(format!("{reference} for {architecture}")));
            }
        }
    }
    problems
}

/// Checks the digest and size of every file in the manifest, and that there is no other file.
///
/// # Errors
/// When the directory cannot be read.
pub fn files(directory: &Path, bundle: &Bundle) -> Result<BTreeSet<BundleProblem>, BundleManifestError> {
    let found = file_records(directory)
        .map_err(|source| BundleManifestError::Read { path: directory.display().to_string(), source })?;
    let describe = |record: &FileRecord| format!("{} ({} bytes)", record.sha256, record.size);
    let owners = LazyCell::new(|| owners(directory, bundle));
    let listed = bundle.files.iter().filter_map(|(path, expected)| {
        let of = || owners.get(path).cloned();
        match found.get(path) {
            None => Some(BundleProblem::Missing { path: path.clone(), of: of() }),
            Some(found) if found == expected => None,
            Some(found) => {
                let (found, expected) = (describe(found), describe(expected));
                Some(BundleProblem::Altered { path: path.clone(), found, expected, of: of() })
            }
        }
    });
    let own = [manifest::FILE_NAME, signature::FILE_NAME];
    let unlisted =
        found.keys().filter(|path| !own.contains(&path.as_str()) && !bundle.files.contains_key(*path));
    Ok(listed.chain(unlisted.map(|path| BundleProblem::Unlisted(path.clone()))).collect())
}

/// The image or package of each file that belongs to one; the first of those that share it. The layers of an image whose
/// manifest is damaged are not known.
fn owners(directory: &Path, bundle: &Bundle) -> BTreeMap<String, String> {
    let mut owners = BTreeMap::new();
    for package in &bundle.packages {
        owners.insert(package.path.clone(), format!("package {} {}", package.name, package.version));
    }
    for (reference, digest) in &bundle.images {
        let mut own = vec![oci_layout::blob_path(digest)];
        let blobs = oci_layout::blobs(directory, digest).unwrap_or_default();
        own.extend(blobs.iter().filter_map(|(_, blob)| blob_path(blob)));
        for path in own {
            owners.entry(path).or_insert_with(|| format!("image {reference}"));
        }
    }
    owners
}

/// What states ask for and the bundle has not, packages for each of its platforms.
fn unmet_needs(bundle: &Bundle, needs: &BTreeMap<BundleNeed, String>) -> BTreeSet<BundleProblem> {
    let images = bundle.images_by_name();
    let packages: Vec<_> =
        bundle.platforms.iter().map(|platform| (platform, bundle.packages_of(platform))).collect();
    let missing = needs.iter().flat_map(|(need, by)| {
        let missing: Vec<String> = match need {
            BundleNeed::Image(name) if images.contains_key(name) => Vec::new(),
            BundleNeed::Image(name) => vec![format!("image {name}")],
            BundleNeed::Package { name, format } => {
                let asks = |platform: &Platform| {
                    format.is_none() || *format == platform.distribution.package_format()
                };
                let without =
                    packages.iter().filter(|(of, packages)| asks(of) && !packages.contains_key(name));
                without.map(|(platform, _)| format!("package {name} for {platform}")).collect()
            }
        };
        missing.into_iter().map(|what| BundleProblem::Asked { what, by: by.clone() })
    });
    missing.collect()
}

/// Checks the blobs of an image, from its manifest or image index on.
fn image(directory: &Path, bundle: &Bundle, reference: &str, digest: &Sha256) -> Vec<BundleProblem> {
    let missing = |part, digest: &str| BundleProblem::Blob {
        reference: reference.to_owned(),
        part,
        digest: format!("sha256:{digest}"),
    };
    let Ok(blobs) = oci_layout::blobs(directory, digest) else {
        // A file of the bundle that is damaged was reported as such.
        let is_file = bundle.files.contains_key(&oci_layout::blob_path(digest));
        return if is_file { Vec::new() } else { vec![missing(oci_layout::MANIFEST, digest.as_str())] };
    };
    let is_listed = |blob: &Descriptor| {
        let listed = blob_path(blob).and_then(|path| bundle.files.get(&path));
        listed.is_some_and(|record| record.size == blob.size())
    };
    let unlisted = blobs.iter().filter(|(_, blob)| !is_listed(blob));
    unlisted.map(|(part, blob)| missing(part, blob.digest().digest())).collect()
}

fn blob_path(blob: &Descriptor) -> Option<String> {
    Some(oci_layout::blob_path(&oci_layout::sha256(blob)?))
}

/// Of an index that was reported as damaged, nothing else is known.
fn platforms_with_damaged_indexes(bundle: &Bundle, problems: &BTreeSet<BundleProblem>) -> BTreeSet<Platform> {
    let damaged: Vec<&str> = problems.iter().filter_map(BundleProblem::path).collect();
    let has_damaged_index = |platform: &&Platform| {
        let indexes =
            format::of_platform(platform).map(|format| format.indexes(&[(*platform).clone()].into()));
        let directories = indexes.into_iter().flatten().filter_map(|index| {
            index.unsigned.rsplit_once('/').map(|(directory, _)| format!("{directory}/"))
        });
        directories.into_iter().any(|directory| damaged.iter().any(|path| path.starts_with(&directory)))
    };
    bundle.platforms.iter().filter(has_damaged_index).cloned().collect()
}

fn packages(directory: &Path, list: &ComponentList, unknown: &BTreeSet<Platform>) -> BTreeSet<BundleProblem> {
    // Nothing asks for the package of metalform, and each release of a distribution has its own C library.
    let for_hosts = list.components.iter().filter(|component| component.sources.program.is_none());
    let own = for_hosts.flat_map(|component| &component.packages).map(|package| package.name.clone());
    let own: BTreeSet<String> = own.collect();
    let mut problems = BTreeSet::new();
    for system in &list.operating_systems {
        let roots = own.iter().chain(&system.packages).cloned().collect();
        let platforms = system.platforms(&list.architectures);
        for platform in platforms.into_iter().filter(|platform| !unknown.contains(platform)) {
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
