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
            signature::check(directory, &text, key)?;
        }
        let bundle: Self = serde_saphyr::from_str(&text)
            .map_err(|error| BundleManifestError::Syntax(component_list::syntax(&name, &error)))?;
        if bundle.kind != "Bundle" || bundle.api_version != API_VERSION {
            return Err(BundleManifestError::OtherDocument {
                path: name,
                kind: bundle.kind,
                api_version: bundle.api_version,
            });
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

    /// The repository indexes that must be signed before hosts accept them.
    pub fn indexes(&self) -> BTreeSet<IndexPaths> {
        let platforms: Vec<Platform> = self.platforms.iter().cloned().collect();
        let of_format = format::by_format(&platforms).into_iter();
        of_format.flat_map(|(format, platforms)| format.indexes(&platforms.into_iter().collect())).collect()
    }
}
