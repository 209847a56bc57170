//! Records of packages and files, in the manifest of a bundle and in cached parts.

use serde::{Deserialize, Serialize};

use super::digest::Sha256;
use crate::model::platform::Platform;

/// A package in the bundle.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundledPackage {
    /// Package name.
    pub name: String,
    /// Platforms that it can be installed on.
    pub platforms: Vec<Platform>,
    /// In the package manager's form.
    pub version: String,
    /// In the package manager's form: `amd64`, `all`.
    pub architecture: String,
    /// Path in the bundle.
    pub path: String,
}

/// The expected content of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileRecord {
    /// Digest of the content.
    pub sha256: Sha256,
    /// In bytes.
    pub size: u64,
}
