//! Debian packages (deb(5)), in one repository with a suite per release.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use async_trait::async_trait;
use jiff::Timestamp;

use super::{
    CollectionRequest, FormatError, IndexPaths, IndexSignature, PackageBuild, RepositoryFormat,
    RepositoryLocation, Unmet,
};
use crate::bundle::content::FileRecord;
use crate::bundle::entry::{Draft, EntryError, EntryPackage};
use crate::bundle::program::ProgramError;
use crate::model::platform::{Architecture, Platform};

mod apt_sources;
pub mod archive;
mod closure;
mod collection;
mod documents;
mod package;
mod repository;
mod stanza;

use archive::ArchiveError;

/// The format of Debian and its derivatives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Debian;

const DIRECTORY: &str = "apt";

/// Why Debian packages could not be built, collected or indexed.
#[derive(Debug, thiserror::Error)]
pub enum DebianError {
    /// dpkg-deb, apt-get or apt-ftparchive: an unknown package, a wrong signature, no archive.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// No archive to collect packages from.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A directory in the cache.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// A package without a mandatory control field.
    #[error("a package in {directory} has no {field}")]
    Field {
        /// Directory of the package.
        directory: String,
        /// Name of the field.
        field: &'static str,
    },
    /// A file of a package, a pool or an index.
    #[error("cannot write {path}")]
    Write {
        /// The file or its directory.
        path: String,
        /// From the operating system.
        source: io::Error,
    },
}

impl DebianError {
    fn write(path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::Write { path: path.display().to_string(), source }
    }
}

/// The suite of a release. All architectures of a release share it.
fn suite(platform: &Platform) -> String {
    format!("{}-{}", platform.distribution, platform.release)
}

#[async_trait]
impl RepositoryFormat for Debian {
    fn directory(&self) -> &'static str {
        DIRECTORY
    }

    fn location(&self, platform: &Platform) -> RepositoryLocation {
        RepositoryLocation { path: DIRECTORY.to_owned(), suite: suite(platform) }
    }

    async fn build(
        &self,
        package: &PackageBuild<'_>,
        work: &Path,
        content: &Path,
    ) -> Result<(), FormatError> {
        Ok(package::build(package, work, &content.join("pool/all")).await?)
    }

    async fn collect(&self, request: &CollectionRequest<'_>, draft: &Draft) -> Result<String, FormatError> {
        Ok(collection::collect(request, draft).await?)
    }

    async fn describe(
        &self,
        content: &Path,
        platforms: &[Platform],
    ) -> Result<Vec<EntryPackage>, FormatError> {
        Ok(repository::describe(content, platforms).await?)
    }

    async fn write_indexes(
        &self,
        content: &Path,
        platforms: &[Platform],
        packages: &[EntryPackage],
        date: Timestamp,
    ) -> Result<(), FormatError> {
        let mut suites: BTreeMap<String, Vec<&Platform>> = BTreeMap::new();
        for platform in platforms {
            suites.entry(suite(platform)).or_default().push(platform);
        }
        for (suite, platforms) in suites {
            repository::write_suite(content, (&suite, &platforms), packages, date)
                .map_err(DebianError::write(&content.join("dists").join(&suite)))?;
        }
        Ok(())
    }

    fn key_file(&self) -> Option<&'static str> {
        None
    }

    fn package_keys(&self, _: &BTreeMap<String, FileRecord>, _: &Platform) -> Option<Vec<String>> {
        None
    }

    fn indexes(&self, platforms: &BTreeSet<Platform>) -> BTreeSet<IndexPaths> {
        let paths = |platform: &Platform| {
            let directory = format!("{DIRECTORY}/dists/{}", suite(platform));
            IndexPaths {
                unsigned: format!("{directory}/Release"),
                signed: format!("{directory}/InRelease"),
                signature: IndexSignature::Clear,
            }
        };
        platforms.iter().map(paths).collect()
    }

    fn unmet(
        &self,
        content: &Path,
        platform: &Platform,
        roots: &BTreeSet<String>,
    ) -> Option<BTreeSet<Unmet>> {
        let index = content.join(repository::packages_path(&suite(platform), platform.architecture));
        Some(closure::unmet(&std::fs::read_to_string(index).ok()?, roots))
    }
}

/// The name of a package file, without the epoch, which is not part of file names in Debian's pool.
fn file_name(name: &str, version: &str, architecture: Architecture) -> String {
    format!("{name}_{version}_{architecture}.deb")
}
