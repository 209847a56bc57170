//! Package formats: everything about building, indexing, signing and serving packages that differs between families
//! of package managers.
//!
//! One implementation of [`RepositoryFormat`] per [`PackageFormat`]. What differs on a host (the commands that
//! install, hold and query packages) is `engine::apply::PackageManager`, selected by the same [`PackageFormat`].
//!
//! In both, the indexes of a repository are signed with the key of the cluster, and have the digest of each package, so that
//! the bytes of a bundle do not depend on the cluster that it is used in. RPM packages can be signed besides, with the key of
//! who builds the bundle; without it, dnf requires `gpgcheck=0` with `repo_gpgcheck=1`.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use async_trait::async_trait;
use jiff::Timestamp;

use super::component::{Component, OperatingSystem, PackageComponent};
use super::content::FileRecord;
use super::entry::{Draft, EntryPackage};
use super::libraries::Libraries;
use crate::model::platform::{Architecture, PackageFormat, Platform};
use crate::pki::openpgp::{OpenPgpError, RepositoryKey};

pub(super) mod archive_uri;
mod copyright;
pub mod debian;
mod gzip;
pub mod rpm;

use self::rpm::RpmError;
use debian::DebianError;
use gzip::gzip;

/// Who answers for the packages that metalform builds.
const MAINTAINER: &str = "metalform <packages@metalform.dev>";

/// A package format of a bundle.
#[async_trait]
pub trait RepositoryFormat: Send + Sync {
    /// The directory of the format's files in a bundle, and of their URLs: `apt`.
    fn directory(&self) -> &'static str;

    /// Where hosts of a platform find their packages.
    fn location(&self, platform: &Platform) -> RepositoryLocation;

    /// Builds a package at the format's usual path below `content`, its directory of a bundle in the making.
    async fn build(&self, package: &PackageBuild<'_>, work: &Path, content: &Path)
    -> Result<(), FormatError>;

    /// Downloads the packages of an operating system with their dependency closure from the distribution's archive.
    /// Returns the provenance.
    async fn collect(&self, request: &CollectionRequest<'_>, draft: &Draft) -> Result<String, FormatError>;

    /// Describes the packages below `content`, its directory of a bundle in the making, for these platforms.
    async fn describe(
        &self,
        content: &Path,
        platforms: &[Platform],
    ) -> Result<Vec<EntryPackage>, FormatError>;

    /// Writes the unsigned indexes of all platforms into its directory of a bundle. `date` must not decrease from one
    /// bundle to the next: package managers keep the newer index.
    async fn write_indexes(
        &self,
        content: &Path,
        platforms: &[Platform],
        packages: &[EntryPackage],
        date: Timestamp,
    ) -> Result<(), FormatError>;

    /// Where the public key of metalform's packages is in its directory of a bundle; `None` where packages are not signed.
    fn key_file(&self) -> Option<&'static str>;

    /// Paths in a bundle with these files of the keys that sign the packages for a platform, those of its distribution
    /// included; `None` where not all of them are signed.
    fn package_keys(&self, files: &BTreeMap<String, FileRecord>, platform: &Platform) -> Option<Vec<String>>;

    /// The indexes that must be signed, each once.
    fn indexes(&self, platforms: &BTreeSet<Platform>) -> BTreeSet<IndexPaths>;

    /// Packages of `roots`, and their dependencies, that a platform cannot install from its directory of a bundle
    /// alone; `None` without an index for the platform.
    fn unmet(&self, content: &Path, platform: &Platform, roots: &BTreeSet<String>)
    -> Option<BTreeSet<Unmet>>;
}

/// The implementation of a format.
pub fn of(format: PackageFormat) -> &'static dyn RepositoryFormat {
    match format {
        PackageFormat::Deb => &debian::Debian,
        PackageFormat::Rpm => &rpm::Rpm,
    }
}

/// All implementations.
pub fn all() -> impl Iterator<Item = &'static dyn RepositoryFormat> {
    [PackageFormat::Deb, PackageFormat::Rpm].into_iter().map(of)
}

/// The implementation for a platform; `None` when bundles cannot contain its packages.
pub fn of_platform(platform: &Platform) -> Option<&'static dyn RepositoryFormat> {
    platform.distribution.package_format().map(of)
}

/// The platforms by format, in the order of [`all`]. Platforms without an implementation are omitted.
pub fn by_format(platforms: &[Platform]) -> Vec<(&'static dyn RepositoryFormat, Vec<Platform>)> {
    let of_format = |format: &'static dyn RepositoryFormat| {
        let is_of = |platform: &&Platform| {
            of_platform(platform).is_some_and(|found| found.directory() == format.directory())
        };
        (format, platforms.iter().filter(is_of).cloned().collect::<Vec<_>>())
    };
    all().map(of_format).filter(|(_, platforms)| !platforms.is_empty()).collect()
}

/// Where hosts of a platform find their packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryLocation {
    /// Path of the repository in a bundle, and below the server's address: `apt`.
    pub path: String,
    /// Suite in the repository: `debian-13`. Empty where each platform has a repository of its own.
    pub suite: String,
}

/// A package to build from binaries.
#[derive(Debug, Clone, Copy)]
pub struct PackageBuild<'a> {
    /// What the binaries are made of.
    pub component: &'a Component,
    /// One of its packages: what it contains.
    pub package: &'a PackageComponent,
    /// Of the binaries.
    pub architecture: Architecture,
    /// Directory with the binaries by name.
    pub binaries: &'a Path,
    /// The shared libraries that the package's binaries are linked to, on which it depends.
    pub libraries: &'a Libraries,
    /// Manual pages and the like: absolute path → text.
    pub documents: &'a BTreeMap<String, String>,
    /// Signs the package, where the format has signatures.
    pub key: Option<&'a RepositoryKey>,
}

impl PackageBuild<'_> {
    /// Texts of the package's own and documents: absolute path → content. Manual pages are compressed, as policies of
    /// distributions require.
    ///
    /// # Errors
    /// When there is no memory.
    fn texts(&self) -> io::Result<BTreeMap<String, Vec<u8>>> {
        let content = |(path, text): (&String, &String)| match path.starts_with("/usr/share/man/") {
            true => Ok((format!("{path}.gz"), gzip(text.as_bytes())?)),
            false => Ok((path.clone(), text.clone().into_bytes())),
        };
        self.package.texts.iter().chain(self.documents).map(content).collect()
    }
}

/// Packages of a distribution's own archive.
#[derive(Debug, Clone, Copy)]
pub struct CollectionRequest<'a> {
    /// The operating system and its packages.
    pub system: &'a OperatingSystem,
    /// One of the platforms of `system`.
    pub platform: &'a Platform,
    /// URI of the archive; `None` for the one that the build machine uses.
    pub archive: Option<&'a str>,
}

/// An index and the file with its signature, relative to the bundle.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexPaths {
    /// In the bundle: `apt/dists/debian-13/Release`.
    pub unsigned: String,
    /// Written by the bootstrap node: `apt/dists/debian-13/InRelease`.
    pub signed: String,
    /// How the latter is made of the former.
    pub signature: IndexSignature,
}

/// A form of signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum IndexSignature {
    /// The signed file contains the text (RFC 9580, section 7).
    Clear,
    /// The signed file contains the signature alone (RFC 9580, section 10.4), in ASCII armor.
    Detached,
}

/// An index to sign with the cluster's repository key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryIndex {
    /// Path of the signed file, relative to the directory with the bootstrap node's signed indexes.
    pub signed_path: String,
    /// The unsigned text.
    pub text: String,
    /// The form of the signature.
    pub signature: IndexSignature,
}

impl RepositoryIndex {
    /// The content of the signed file.
    ///
    /// # Errors
    /// When the key cannot sign.
    pub fn sign(&self, key: &RepositoryKey, now: Timestamp) -> Result<String, OpenPgpError> {
        match self.signature {
            IndexSignature::Clear => key.clear_sign(&self.text, now),
            IndexSignature::Detached => key.sign_detached(&self.text, now),
        }
    }

    /// Verifies that a file is this index, signed with this key.
    ///
    /// # Errors
    /// [`OpenPgpError::NotSigned`].
    pub fn verify(&self, key: &RepositoryKey, signed: &str) -> Result<(), OpenPgpError> {
        match self.signature {
            IndexSignature::Clear => key.verify(signed, &self.text),
            IndexSignature::Detached => key.verify_detached(signed, &self.text),
        }
    }
}

/// A dependency that no package of an index satisfies. Displays as one line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unmet {
    /// The dependent package; `None` for a required package itself.
    pub package: Option<String>,
    /// As the package manager writes it: `libc6 (>= 2.36) | libc6.1`, `glibc >= 2.34`.
    pub needs: String,
}

impl std::fmt::Display for Unmet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.package {
            Some(package) => write!(f, "package {package} depends on {}, which is missing", self.needs),
            None => write!(f, "package {} is missing", self.needs),
        }
    }
}

/// Why packages could not be built, collected or indexed.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// Of Debian packages.
    #[error(transparent)]
    Debian(#[from] DebianError),
    /// Of RPM packages.
    #[error(transparent)]
    Rpm(Box<RpmError>),
}

impl From<RpmError> for FormatError {
    fn from(error: RpmError) -> Self {
        Self::Rpm(Box::new(error))
    }
}
