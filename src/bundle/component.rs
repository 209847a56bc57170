//! The component list: the inputs of a bundle. Plain data, as written.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::digest::Sha256;
use super::format::archive_uri::without_credentials;
use crate::model::platform::{Architecture, Distribution, Platform, Release};

/// The document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComponentList {
    /// [`crate::model::api_contract::API_VERSION`].
    #[serde(rename = "apiVersion")]
    pub api_version: String,
    /// `ComponentList`.
    pub kind: String,
    /// Processor architectures of the hosts, at least one. With several, each image is an OCI image index.
    pub architectures: Vec<Architecture>,
    /// Operating systems of the hosts.
    pub operating_systems: Vec<OperatingSystem>,
    /// In the order of building.
    pub components: Vec<Component>,
}

/// A release of a distribution, and the packages that hosts need from its own archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperatingSystem {
    /// `ID` of os-release(5).
    pub distribution: Distribution,
    /// `VERSION_ID` of os-release(5); the major version for the Red Hat family.
    pub release: Release,
    /// The name of the release in the distribution's archive: `trixie`. For the Red Hat family its repositories,
    /// separated by spaces, as URLs or as paths below the archive: `9/BaseOS/$basearch/os 9/AppStream/$basearch/os`.
    pub suite: String,
    /// Packages to bundle with their dependency closure.
    pub packages: Vec<String>,
}

/// An upstream project at one version. `{version}` and `{arch}` in its strings are placeholders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Component {
    /// The project: `kubernetes`.
    pub name: String,
    /// Without a leading `v`; also the version of its packages.
    pub version: String,
    /// Of its binaries, as an SPDX expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// Holder of the copyright: `The Kubernetes Authors`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copyright: Option<String>,
    /// URL of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub homepage: Option<String>,
    /// Sources of its binaries.
    pub sources: Sources,
    /// Container images to make of the binaries.
    #[serde(default)]
    pub images: Vec<ImageComponent>,
    /// Distribution packages to make of the binaries.
    #[serde(default)]
    pub packages: Vec<PackageComponent>,
}

/// Alternative sources. Each provides every binary of the component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sources {
    /// Official artefacts.
    #[serde(default)]
    pub release: Vec<ReleaseArtefact>,
    /// The Go module of the same version.
    #[serde(default)]
    pub go: Option<GoSource>,
    /// metalform itself, without another source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramSource>,
}

/// The program that builds the bundle, whose version is that of the component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramSource {
    /// The name of the binary.
    pub binary: String,
    /// Digests of the programs that were packaged, which a build records.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sha256: BTreeMap<Architecture, Sha256>,
}

/// An official artefact: a binary, or a gzipped tar archive with binaries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleaseArtefact {
    /// `https://`, with placeholders.
    pub url: String,
    /// URL of a file with its SHA-256, bare or in the form of sha256sum(1); `{url}` is the URL of the artefact.
    #[serde(default)]
    pub sha256_url: Option<String>,
    /// Known digests by architecture. They take precedence over `sha256_url`.
    #[serde(default)]
    pub sha256: BTreeMap<Architecture, Sha256>,
    /// The name of the binary that the artefact is. Either this or `members`.
    #[serde(default)]
    pub binary: Option<String>,
    /// Name of a binary → its path in the archive, with or without a leading `./`.
    #[serde(default)]
    pub members: BTreeMap<String, String>,
}

/// A wrapper module that builds commands of other modules, or a `main` of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoSource {
    /// Module path → version. Pins the whole build list (minimal version selection).
    #[serde(default)]
    pub requires: BTreeMap<String, String>,
    /// Digest of the wrapper module's go.sum, which has the hash of each module that the binaries are made of. It replaces
    /// the checksum database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum: Option<Sha256>,
    /// Kubernetes only: the required module develops `k8s.io/NAME v0.0.0` in its own tree; replace each by the published
    /// `k8s.io/NAME` of the same release.
    #[serde(default)]
    pub replace_staging: bool,
    /// Name of a binary → import path of its command.
    #[serde(default)]
    pub packages: BTreeMap<String, String>,
    /// Name of a binary → Go source of its `main` package.
    #[serde(default)]
    pub mains: BTreeMap<String, String>,
    /// Linker flags after `-s -w`.
    #[serde(default)]
    pub ldflags: String,
}

/// A container image with one layer of static binaries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageComponent {
    /// Upstream's full reference with a tag.
    pub reference: String,
    /// Absolute path → name of a binary.
    pub files: BTreeMap<String, String>,
    /// `Entrypoint` of the image configuration.
    pub entrypoint: Vec<String>,
    /// `User` of the image configuration, numeric; root by default.
    #[serde(default)]
    pub user: Option<String>,
}

/// A distribution package of static binaries. Relations are written as in deb-control(5), with Debian's names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageComponent {
    /// Package name.
    pub name: String,
    /// One line, without a full stop.
    pub description: String,
    /// What it is for: lines of at most 79 characters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub details: String,
    /// `Depends`.
    #[serde(default)]
    pub depends: Vec<String>,
    /// `Provides`.
    #[serde(default)]
    pub provides: Vec<String>,
    /// `Conflicts`.
    #[serde(default)]
    pub conflicts: Vec<String>,
    /// `Replaces`.
    #[serde(default)]
    pub replaces: Vec<String>,
    /// Absolute path → name of a binary; mode 0755.
    pub files: BTreeMap<String, String>,
    /// Absolute path → content; mode 0644.
    #[serde(default)]
    pub texts: BTreeMap<String, String>,
}

impl ComponentList {
    /// As a bundle records it, which every host can read: no URL has a user name or a password.
    #[must_use]
    pub(super) fn without_credentials(&self) -> Self {
        let mut list = self.clone();
        for system in &mut list.operating_systems {
            let words: Vec<String> = system.suite.split_whitespace().map(without_credentials).collect();
            system.suite = words.join(" ");
        }
        for artefact in list.components.iter_mut().flat_map(|component| &mut component.sources.release) {
            artefact.url = without_credentials(&artefact.url);
            artefact.sha256_url = artefact.sha256_url.as_deref().map(without_credentials);
        }
        list
    }

    /// Every operating system on every architecture, in the order of the list.
    pub fn platforms(&self) -> Vec<Platform> {
        self.platforms_of(&self.architectures)
    }

    /// Every operating system on each of these architectures.
    pub fn platforms_of(&self, architectures: &[Architecture]) -> Vec<Platform> {
        self.operating_systems.iter().flat_map(|system| system.platforms(architectures)).collect()
    }
}

impl OperatingSystem {
    /// The operating system on each of these architectures.
    pub fn platforms(&self, architectures: &[Architecture]) -> Vec<Platform> {
        let platform = |architecture: &Architecture| Platform {
            distribution: self.distribution.clone(),
            release: self.release.clone(),
            architecture: *architecture,
        };
        architectures.iter().map(platform).collect()
    }
}

impl Component {
    /// Names of the binaries of all its images and packages.
    pub fn binaries(&self) -> BTreeSet<&str> {
        let images = self.images.iter().flat_map(|image| image.files.values());
        let packages = self.packages.iter().flat_map(|package| package.files.values());
        images.chain(packages).map(String::as_str).collect()
    }

    /// Replaces the placeholders of `text`.
    pub fn expand(&self, text: &str, architecture: Architecture) -> String {
        text.replace("{version}", &self.version).replace("{arch}", architecture.as_str())
    }
}

impl Sources {
    /// Names of the binaries that the official artefacts provide.
    pub fn release_binaries(&self) -> BTreeSet<&str> {
        let names =
            self.release.iter().flat_map(|artefact| artefact.binary.iter().chain(artefact.members.keys()));
        names.map(String::as_str).collect()
    }
}

impl PackageComponent {
    /// What a package manager shows below the description.
    pub fn paragraph(&self) -> String {
        if self.details.is_empty() { format!("{}.", self.description) } else { self.details.clone() }
    }
}

impl GoSource {
    /// Names of the binaries that the module provides.
    pub fn binaries(&self) -> BTreeSet<&str> {
        self.packages.keys().chain(self.mains.keys()).map(String::as_str).collect()
    }
}
