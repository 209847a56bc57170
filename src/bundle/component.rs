//! The component list: what a bundle is made from. Plain data, as read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::digest::Sha256;

/// `apiVersion` of the documents of this module.
pub const API_VERSION: &str = "metalform.dev/v1alpha1";

/// The whole list. One list describes bundles of one architecture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComponentList {
    /// [`API_VERSION`].
    #[serde(rename = "apiVersion")]
    pub api_version: String,
    /// `ComponentList`.
    pub kind: String,
    /// The processor architecture of every host.
    pub architecture: Architecture,
    /// The systems whose packages are bundled.
    pub operating_systems: Vec<OperatingSystem>,
    /// In the order in which they are built.
    pub components: Vec<Component>,
}

/// In Go's and Debian's spelling, which is one for these two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Architecture {
    /// x86-64.
    Amd64,
    /// AArch64.
    Arm64,
}

impl Architecture {
    /// `amd64`, `arm64`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }
}

/// A distribution release, and what its hosts need from its own archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperatingSystem {
    /// `ID` of os-release(5).
    pub id: Distribution,
    /// `VERSION_CODENAME` of os-release(5); a suite of the archive.
    pub codename: String,
    /// Packages whose whole dependency closure is bundled.
    pub packages: Vec<String>,
}

/// Distributions whose archive can be bundled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// Debian.
    Debian,
}

/// One upstream project at one version. In its texts `{version}` and `{arch}` stand for just these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Component {
    /// The project: `kubernetes`.
    pub name: String,
    /// Without a leading `v`; also the version of its packages.
    pub version: String,
    /// Where its binaries come from.
    pub sources: Sources,
    /// What it gives as container images.
    #[serde(default)]
    pub images: Vec<Image>,
    /// What it gives as distribution packages.
    #[serde(default)]
    pub packages: Vec<Package>,
}

/// Each source that is there gives every binary of the component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sources {
    /// Official artefacts.
    #[serde(default)]
    pub release: Vec<Download>,
    /// The Go module of the same version.
    #[serde(default)]
    pub go: Option<GoSource>,
}

/// One official artefact: a binary, or a gzipped tar archive with some.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Download {
    /// Where it lies.
    pub url: String,
    /// A published file that has its SHA-256, bare or in sha256sum(1)'s form; `{url}` stands for the URL.
    #[serde(default)]
    pub sha256_url: Option<String>,
    /// Known digests by architecture; where one is given, `sha256_url` is not asked.
    #[serde(default)]
    pub sha256: BTreeMap<Architecture, Sha256>,
    /// The name of the binary that the artefact is. Either this or `members`.
    #[serde(default)]
    pub binary: Option<String>,
    /// Name of a binary → its path in the archive (a leading `./` does not matter).
    #[serde(default)]
    pub members: BTreeMap<String, String>,
}

/// A wrapper module that builds commands of other modules, or a `main` of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoSource {
    /// Module path → version, which pins the whole build list (minimal version selection).
    #[serde(default)]
    pub requires: BTreeMap<String, String>,
    /// Kubernetes only: the one required module develops `k8s.io/NAME v0.0.0` in its own tree; replace
    /// each by the published `k8s.io/NAME` of the same release.
    #[serde(default)]
    pub replace_staging: bool,
    /// Name of a binary → import path of its command.
    #[serde(default)]
    pub packages: BTreeMap<String, String>,
    /// Name of a binary → Go source of its `main` package.
    #[serde(default)]
    pub mains: BTreeMap<String, String>,
    /// For the linker, after `-s -w`.
    #[serde(default)]
    pub ldflags: String,
}

/// A container image of one layer: static binaries and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// Upstream's full reference with a tag.
    pub reference: String,
    /// Absolute path → name of a binary.
    pub files: BTreeMap<String, String>,
    /// `Entrypoint` of the image configuration.
    pub entrypoint: Vec<String>,
    /// `User` of the image configuration, numeric; root where there is none.
    #[serde(default)]
    pub user: Option<String>,
}

/// A Debian package; fields as in deb-control(5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// Package name.
    pub name: String,
    /// One line.
    pub description: String,
    /// Relations, as in deb-control(5).
    #[serde(default)]
    pub depends: Vec<String>,
    /// As above.
    #[serde(default)]
    pub provides: Vec<String>,
    /// As above.
    #[serde(default)]
    pub conflicts: Vec<String>,
    /// As above.
    #[serde(default)]
    pub replaces: Vec<String>,
    /// Absolute path → name of a binary; mode 0755.
    pub files: BTreeMap<String, String>,
    /// Absolute path → content; mode 0644.
    #[serde(default)]
    pub texts: BTreeMap<String, String>,
}

impl Component {
    /// Names of every binary that its images and packages take.
    pub fn binaries(&self) -> std::collections::BTreeSet<&str> {
        let images = self.images.iter().flat_map(|image| image.files.values());
        let packages = self.packages.iter().flat_map(|package| package.files.values());
        images.chain(packages).map(String::as_str).collect()
    }

    /// `text` with its placeholders replaced.
    pub fn expand(&self, text: &str, architecture: Architecture) -> String {
        text.replace("{version}", &self.version).replace("{arch}", architecture.as_str())
    }
}

impl Sources {
    /// Names of the binaries that the official artefacts give.
    pub fn release_binaries(&self) -> std::collections::BTreeSet<&str> {
        let names =
            self.release.iter().flat_map(|download| download.binary.iter().chain(download.members.keys()));
        names.map(String::as_str).collect()
    }
}

impl GoSource {
    /// Names of the binaries that it gives.
    pub fn binaries(&self) -> std::collections::BTreeSet<&str> {
        self.packages.keys().chain(self.mains.keys()).map(String::as_str).collect()
    }
}
