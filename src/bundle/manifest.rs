//! `bundle.yaml`: what a bundle holds, with digests. Written last, read by everyone else.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::component::{API_VERSION, Architecture};
use super::component_list::{self, ComponentListError};
use super::digest::Sha256;

/// Its name in the bundle's directory.
pub const FILE_NAME: &str = "bundle.yaml";

/// The whole of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bundle {
    /// `metalform.dev/v1alpha1`.
    #[serde(rename = "apiVersion")]
    pub api_version: String,
    /// `Bundle`.
    pub kind: String,
    /// Digest of all that decided its content; the same inputs are not built twice.
    pub inputs: Sha256,
    /// Of every host.
    pub architecture: Architecture,
    /// Component → version.
    pub versions: BTreeMap<String, String>,
    /// Component, or operating system's codename → where its parts came from.
    pub provenance: BTreeMap<String, String>,
    /// Full reference → digest of the manifest.
    pub images: BTreeMap<String, Sha256>,
    /// By name, then codenames.
    pub packages: Vec<BundledPackage>,
    /// Path in the bundle → what lies there; every file but this one.
    pub files: BTreeMap<String, FileRecord>,
}

/// A distribution package in the bundle.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundledPackage {
    /// Package name.
    pub name: String,
    /// Codenames of the systems that may install it.
    pub systems: Vec<String>,
    /// As the package manager writes it.
    pub version: String,
    /// `amd64`, `arm64` or `all`.
    pub architecture: String,
    /// Path in the bundle.
    pub path: String,
}

/// What a file must be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileRecord {
    /// Of its content.
    pub sha256: Sha256,
    /// Bytes.
    pub size: u64,
}

/// Why a bundle cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// There is none, or it may not be read.
    #[error("{path} cannot be read")]
    Read {
        /// The manifest.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is not what this version of metalform writes.
    #[error(transparent)]
    Syntax(ComponentListError),
    /// Another document.
    #[error("{path}: this is {kind} of {api_version}, not Bundle of {API_VERSION}")]
    OtherDocument {
        /// The manifest.
        path: String,
        /// What it says.
        kind: String,
        /// What it says.
        api_version: String,
    },
}

impl Bundle {
    /// Reads the manifest of the bundle in `directory`; no other file is looked at.
    ///
    /// # Errors
    /// When it is missing, cannot be parsed, or is another document.
    pub fn read(directory: &Path) -> Result<Self, ManifestError> {
        let path = directory.join(FILE_NAME);
        let name = path.display().to_string();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(source) => return Err(ManifestError::Read { path: name, source }),
        };
        let bundle: Self = serde_saphyr::from_str(&text)
            .map_err(|error| ManifestError::Syntax(component_list::syntax(&name, &error)))?;
        if bundle.kind != "Bundle" || bundle.api_version != API_VERSION {
            return Err(ManifestError::OtherDocument {
                path: name,
                kind: bundle.kind,
                api_version: bundle.api_version,
            });
        }
        Ok(bundle)
    }
}
