//! `bundle.yaml`: the manifest of a bundle. It is written last.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::component_list::{self, ComponentListError};
use super::content::{BundledPackage, FileRecord};
use super::digest::Sha256;
use super::format::{self, IndexPaths};
use super::signature::{self, SignatureFileError};
use crate::model::api_contract::API_VERSION;
use crate::model::bundle_key::BundleKey;
use crate::model::platform::{Architecture, Platform};

/// The file name in the bundle's directory.
pub const FILE_NAME: &str = "bundle.yaml";

/// Limit of its size, and of that of its signature, where they come from elsewhere; in bytes.
pub(super) const SIZE_LIMIT: u64 = 64 << 20;

/// The document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bundle {
    /// `metalform.dev/v1alpha1`.
    #[serde(rename = "apiVersion")]
    pub api_version: String,
    /// `Bundle`.
    pub kind: String,
    /// Digest of everything that determines the content.
    pub inputs: Sha256,
    /// Architectures of the images.
    pub architectures: Vec<Architecture>,
    /// Platforms of the packages.
    pub platforms: BTreeSet<Platform>,
    /// Component → version.
    pub versions: BTreeMap<String, String>,
    /// Component or platform → URLs, modules or archive.
    pub provenance: BTreeMap<String, String>,
    /// Full reference → digest of the manifest.
    pub images: BTreeMap<String, Sha256>,
    /// Ordered by name, then platforms.
    pub packages: Vec<BundledPackage>,
    /// Path in the bundle → digest and size; every file but this one.
    pub files: BTreeMap<String, FileRecord>,
}

/// Why a manifest was refused.
#[derive(Debug, thiserror::Error)]
pub enum BundleManifestError {
    /// Missing or unreadable.
    #[error("cannot read {path}")]
    Read {
        /// Of the manifest.
        path: String,
        /// From the operating system.
        source: std::io::Error,
    },
    /// Not the format of this version of metalform.
    #[error(transparent)]
    Syntax(ComponentListError),
    /// Not signed with the key that is required.
    #[error(transparent)]
    Signature(#[from] SignatureFileError),
    /// A file that would not be in the bundle's directory.
    #[error("{path}: {file:?} is not a path in a bundle")]
    Path {
        /// Of the manifest.
        path: String,
        /// As written.
        file: String,
    },
    /// A document of another kind.
    #[error("{path}: expected Bundle of {API_VERSION}, found {kind} of {api_version}")]
    OtherDocument {
        /// Of the manifest.
        path: String,
        /// As written.
        kind: String,
        /// As written.
        api_version: String,
    },
}

impl Bundle {
    /// Reads the manifest of the bundle in `directory`, and no other file.
    ///
    /// # Errors
    /// When it is missing, cannot be parsed, or is another document.
    pub fn read(directory: &Path) -> Result<Self, BundleManifestError> {
        Self::read_signed(directory, None)
    }

    /// As [`Bundle::read`]. With a key, the manifest must be signed with it; nothing of it is parsed before.
    ///
    /// # Errors
    /// As there, and when it is not signed with the key.
    pub fn read_signed(directory: &Path, key: Option<&BundleKey>) -> Result<Self, BundleManifestError> {
        let path = directory.join(FILE_NAME);
        let name = path.display().to_string();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(source) => return Err(BundleManifestError::Read { path: name, source }),
        };
        if let Some(key) = key {
            let signature = signature::read(directory)?;
            let path = directory.join(signature::FILE_NAME).display().to_string();
            signature::check(&path, (&text, signature.as_deref()), key)?;
        }
        Self::parse(&name, &text)
    }

    /// The manifest in a text; `name` is used in messages only.
    ///
    /// # Errors
    /// When it cannot be parsed, is another document, or has a file that would be outside of the bundle.
    pub fn parse(name: &str, text: &str) -> Result<Self, BundleManifestError> {
        let bundle: Self = serde_saphyr::from_str(text)
            .map_err(|error| BundleManifestError::Syntax(component_list::syntax(name, &error)))?;
        let path = name.to_owned();
        if bundle.kind != "Bundle" || bundle.api_version != API_VERSION {
            let (kind, api_version) = (bundle.kind, bundle.api_version);
            return Err(BundleManifestError::OtherDocument { path, kind, api_version });
        }
        let listed = bundle.files.keys().chain(bundle.packages.iter().map(|package| &package.path));
        if let Some(file) = listed.into_iter().find(|file| !is_in_bundle(file)) {
            return Err(BundleManifestError::Path { path, file: file.clone() });
        }
        Ok(bundle)
    }

    /// The Kubernetes version that the bundle deploys.
    pub fn kubernetes_version(&self) -> Option<&str> {
        self.versions.get("kubernetes").map(String::as_str)
    }

    /// The versions of the packages for a platform, by name.
    pub fn packages_of(&self, platform: &Platform) -> BTreeMap<String, String> {
        let of_platform = self.packages.iter().filter(|package| package.platforms.contains(platform));
        of_platform.map(|package| (package.name.clone(), package.version.clone())).collect()
    }

    /// `registry.k8s.io/coredns/coredns:v1.14.7` is known as `coredns`. With its digest: hosts pull what is in the bundle,
    /// whatever the registry has under the tag.
    pub fn images_by_name(&self) -> BTreeMap<String, String> {
        let named = self.images.iter().filter_map(|(reference, digest)| {
            let name = reference.rsplit('/').next()?.split(':').next()?;
            Some((name.to_owned(), format!("{reference}@sha256:{digest}")))
        });
        named.collect()
    }

    /// The repository indexes that must be signed before hosts accept them.
    pub fn indexes(&self) -> BTreeSet<IndexPaths> {
        let platforms: Vec<Platform> = self.platforms.iter().cloned().collect();
        let of_format = format::by_format(&platforms).into_iter();
        of_format.flat_map(|(format, platforms)| format.indexes(&platforms.into_iter().collect())).collect()
    }
}

/// Whether a path stays below the bundle's directory.
pub fn is_in_bundle(path: &str) -> bool {
    !path.is_empty() && path.split('/').all(|part| !matches!(part, "" | "." | "..") && !part.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(image: &str, file: &str) -> String {
        let digest = "a".repeat(64);
        format!(
            "apiVersion: metalform.dev/v1alpha1\nkind: Bundle\ninputs: {digest}\narchitectures: [amd64]\nplatforms: []\n\
             versions: {{}}\nprovenance: {{}}\nimages: {{ \"{image}\": {digest} }}\npackages: []\n\
             files: {{ \"{file}\": {{ sha256: {digest}, size: 1 }} }}\n"
        )
    }

    fn read(text: &str) -> Result<Bundle, String> {
        Bundle::parse(FILE_NAME, text).map_err(|error| error.to_string())
    }

    #[test]
    fn images_are_known_by_the_last_part_of_their_name_and_have_their_digest() {
        let digest = "a".repeat(64);
        let images = [
            ("registry.k8s.io/coredns/coredns:v1.14.7", "coredns"),
            ("registry.k8s.io/pause:3.10.1", "pause"),
        ];
        for (reference, name) in images {
            let found = read(&bundle(reference, "apt/a.deb")).unwrap().images_by_name();
            assert_eq!(found, BTreeMap::from([(name.to_owned(), format!("{reference}@sha256:{digest}"))]));
        }
    }

    #[test]
    fn no_file_of_a_manifest_is_outside_of_the_bundle() {
        for path in ["/etc/passwd", "../x", "apt/../../x", "apt//x", "./x", "", "apt/"] {
            let error = read(&bundle("a:1", path)).unwrap_err();
            assert!(error.ends_with(&format!("{path:?} is not a path in a bundle")), "{error}");
        }
    }
}
