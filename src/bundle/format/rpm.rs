//! RPM packages (rpm.org), in one repository per platform.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use jiff::Timestamp;

use super::{
    CollectionRequest, FormatError, IndexPaths, IndexSignature, PackageBuild, RepositoryFormat,
    RepositoryLocation, Unmet,
};
use crate::bundle::content::{BundledPackage, FileRecord};
use crate::bundle::entry::{Draft, EntryError, EntryPackage};
use crate::bundle::program::ProgramError;
use crate::bundle::worker_thread::on_worker_thread;
use crate::model::platform::Platform;
use crate::pki::openpgp::OpenPgpError;

mod closure;
mod collection;
mod package;
mod relation;
mod repodata;
mod requirement;
mod signature;
mod version_range;

use relation::RelationError;
use repodata::{DescribeError, IndexEntries};
use signature::SignatureSectionError;

/// The format of Red Hat Enterprise Linux and its derivatives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rpm;

const DIRECTORY: &str = "rpm";

/// Why RPM packages could not be built, collected or indexed.
#[derive(Debug, thiserror::Error)]
pub enum RpmError {
    /// dnf: an unknown package, a wrong signature, no archive.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// No archive to collect packages from.
    #[error("no archive for the packages of {platform}: set --archive, or URLs in the suite")]
    NoArchive {
        /// Their platform.
        platform: Platform,
    },
    /// No keys to verify packages with.
    #[error("no keys of the distribution's packages in {directory}")]
    NoKeys {
        /// Where they are expected.
        directory: String,
    },
    /// A relation in the component list.
    #[error(transparent)]
    Relation(#[from] RelationError),
    /// A directory in the cache.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// A package could not be built.
    #[error("cannot build the package {package}")]
    Build {
        /// Its name.
        package: String,
        /// The library's error.
        source: rpm::Error,
    },
    /// A package could not be signed.
    #[error("cannot sign the package {package}")]
    Sign {
        /// Its name.
        package: String,
        /// From the key.
        source: OpenPgpError,
    },
    /// A package has another form.
    #[error("cannot add a signature to the package {package}")]
    Section {
        /// Its name.
        package: String,
        /// What is wrong.
        source: SignatureSectionError,
    },
    /// A file in the pool is not a package.
    #[error("cannot read the package {path}")]
    Describe {
        /// The file.
        path: String,
        /// What is wrong with it.
        source: DescribeError,
    },
    /// A package index in the cache.
    #[error("cannot parse the cached index entry of {path}")]
    IndexEntry {
        /// The package.
        path: String,
        /// From the parser.
        source: serde_json::Error,
    },
    /// A file of a pool or an index.
    #[error("cannot write {path}")]
    Write {
        /// The file or its directory.
        path: String,
        /// From the operating system.
        source: io::Error,
    },
}

impl RpmError {
    fn write(path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::Write { path: path.display().to_string(), source }
    }
}

/// The directory of packages, relative to that of the format. The repositories of all platforms share what metalform
/// builds: `all`.
fn pool(of: &str) -> String {
    format!("pool/{of}")
}

/// The key of what metalform builds, relative to the directory of the format.
const OWN_KEY: &str = "keys/packages.asc";

/// The directory of the keys of a distribution, relative to that of the format.
fn keys(platform: &Platform) -> String {
    format!("keys/{platform}")
}

#[async_trait]
impl RepositoryFormat for Rpm {
    fn directory(&self) -> &'static str {
        DIRECTORY
    }

    fn location(&self, platform: &Platform) -> RepositoryLocation {
        RepositoryLocation { path: format!("{DIRECTORY}/{platform}"), suite: String::new() }
    }

    async fn build(
        &self,
        package: &PackageBuild<'_>,
        _work: &Path,
        content: &Path,
    ) -> Result<(), FormatError> {
        Ok(package::build(package, &content.join(pool("all"))).await?)
    }

    async fn collect(&self, request: &CollectionRequest<'_>, draft: &Draft) -> Result<String, FormatError> {
        Ok(collection::collect(request, draft).await?)
    }

    async fn describe(
        &self,
        content: &Path,
        platforms: &[Platform],
    ) -> Result<Vec<EntryPackage>, FormatError> {
        let (content, platforms) = (content.to_owned(), platforms.to_vec());
        // It reads every package.
        Ok(on_worker_thread(move || describe(&content, &platforms)).await?)
    }

    async fn write_indexes(
        &self,
        content: &Path,
        platforms: &[Platform],
        packages: &[EntryPackage],
        date: Timestamp,
    ) -> Result<(), FormatError> {
        for platform in platforms {
            let repository = content.join(platform.to_string());
            let served = packages.iter().filter(|entry| entry.package.platforms.contains(platform));
            let entries = served.map(index_entries).collect::<Result<Vec<_>, _>>()?;
            repodata::write(&repository, &entries, date).map_err(RpmError::write(&repository))?;
        }
        Ok(())
    }

    fn key_file(&self) -> Option<&'static str> {
        Some(OWN_KEY)
    }

    fn package_keys(&self, files: &BTreeMap<String, FileRecord>, platform: &Platform) -> Option<Vec<String>> {
        let own = format!("{DIRECTORY}/{OWN_KEY}");
        let of_distribution = format!("{DIRECTORY}/{}/", keys(platform));
        let others = files.keys().filter(|path| path.starts_with(&of_distribution)).cloned();
        files.contains_key(&own).then(|| std::iter::once(own).chain(others).collect())
    }

    fn indexes(&self, platforms: &BTreeSet<Platform>) -> BTreeSet<IndexPaths> {
        let paths = |platform: &Platform| {
            let unsigned = format!("{DIRECTORY}/{platform}/{}", repodata::signed_document());
            IndexPaths { signed: format!("{unsigned}.asc"), unsigned, signature: IndexSignature::Detached }
        };
        platforms.iter().map(paths).collect()
    }

    fn unmet(
        &self,
        content: &Path,
        platform: &Platform,
        roots: &BTreeSet<String>,
    ) -> Option<BTreeSet<Unmet>> {
        let indexes = repodata::read(&content.join(platform.to_string()))?;
        Some(closure::unmet(&indexes, roots))
    }
}

fn index_entries(entry: &EntryPackage) -> Result<IndexEntries, RpmError> {
    let found = serde_json::from_str(&entry.index_entry);
    found.map_err(|source| RpmError::IndexEntry { path: entry.package.path.clone(), source })
}

/// Describes every package below the pools, for these platforms.
fn describe(content: &Path, platforms: &[Platform]) -> Result<Vec<EntryPackage>, RpmError> {
    let pools = content.join("pool");
    let mut packages = Vec::new();
    for pool in directory_entries(&pools)? {
        for file in directory_entries(&pool)? {
            let path = file.strip_prefix(content).unwrap_or(&file).display().to_string();
            packages.push(
                described(content, &path, platforms)
                    .map_err(|source| RpmError::Describe { path: file.display().to_string(), source })?,
            );
        }
    }
    packages.sort_by(|a, b| a.package.cmp(&b.package));
    Ok(packages)
}

fn described(content: &Path, path: &str, platforms: &[Platform]) -> Result<EntryPackage, DescribeError> {
    let (metadata, entries) = repodata::describe(content, path)?;
    let package = BundledPackage {
        name: metadata.get_name()?.to_owned(),
        platforms: platforms.to_vec(),
        version: metadata.get_evr()?.to_string(),
        architecture: metadata.get_arch()?.to_owned(),
        path: format!("{DIRECTORY}/{path}"),
    };
    let index_entry = serde_json::to_string(&entries).map_err(io::Error::from)?;
    Ok(EntryPackage { package, index_entry })
}

fn directory_entries(directory: &Path) -> Result<Vec<PathBuf>, RpmError> {
    let read = || -> io::Result<Vec<PathBuf>> {
        let mut paths =
            fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
        paths.sort();
        Ok(paths)
    };
    read().map_err(|source| RpmError::Describe {
        path: directory.display().to_string(),
        source: DescribeError::Read(source),
    })
}
