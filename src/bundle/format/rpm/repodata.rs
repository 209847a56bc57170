//! The indexes of an RPM repository: one repository per platform, beside a pool of packages that they share.
//!
//! The formats have no specification; createrepo_c writes them, and the tests compare with it. The bootstrap node signs
//! `repomd.xml` with the cluster's key.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use flate2::read::GzDecoder;
use jiff::Timestamp;
use quick_xml::se::SeError;
use rpm::PackageMetadata;
use serde::{Deserialize, Serialize};

mod filelists;
mod other;
mod primary;
mod repomd;
mod xml;

use filelists::PackageFiles;
use primary::PrimaryPackage;
pub(super) use primary::RelationEntry;
use repomd::RepositoryDocuments;
use xml::PackageVersion;

use crate::bundle::digest::Sha256;
use crate::bundle::format::gzip::gzip;

const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

/// The documents with packages: name, root element, and its attributes before the number of packages.
const DOCUMENTS: [(&str, &str, &str); 3] = [
    (
        "primary",
        "metadata",
        "xmlns=\"http://linux.duke.edu/metadata/common\" xmlns:rpm=\"http://linux.duke.edu/metadata/rpm\"",
    ),
    ("filelists", "filelists", "xmlns=\"http://linux.duke.edu/metadata/filelists\""),
    ("other", "otherdata", "xmlns=\"http://linux.duke.edu/metadata/other\""),
];

/// The path of the document that is signed, relative to the repository.
pub(super) fn signed_document() -> String {
    format!("repodata/{}", repomd::FILE_NAME)
}

/// What the indexes contain of a package.
struct PackageFacts<'a> {
    metadata: &'a PackageMetadata,
    /// Relative to the directory of the repositories.
    path: &'a str,
    digest: &'a Sha256,
    size: u64,
}

impl PackageFacts<'_> {
    fn version(&self) -> Result<PackageVersion, rpm::Error> {
        Ok(PackageVersion {
            epoch: self.metadata.get_epoch().unwrap_or_default().to_string(),
            version: self.metadata.get_version()?.to_owned(),
            release: self.metadata.get_release()?.to_owned(),
        })
    }
}

/// A package's elements in the documents, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct IndexEntries([String; 3]);

/// Why a package cannot be described.
#[derive(Debug, thiserror::Error)]
pub enum DescribeError {
    /// Not readable.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// Not a package, or one without a mandatory tag.
    #[error(transparent)]
    Header(#[from] rpm::Error),
    /// A value that XML cannot express.
    #[error(transparent)]
    Xml(#[from] SeError),
}

/// Describes the package at `path`, relative to the directory of the repositories.
///
/// # Errors
/// When it is not a package.
pub(super) fn describe(
    directory: &Path,
    path: &str,
) -> Result<(PackageMetadata, IndexEntries), DescribeError> {
    let file = directory.join(path);
    let (digest, size) = Sha256::of_file(&file)?;
    let metadata = PackageMetadata::open(&file)?;
    let facts = PackageFacts { metadata: &metadata, path, digest: &digest, size };
    let entries = IndexEntries([
        xml::element(&primary::package(&facts)?)?,
        xml::element(&filelists::package(&facts)?)?,
        xml::element(&other::package(&facts)?)?,
    ]);
    Ok((metadata, entries))
}

/// Writes the indexes of these packages below `repository`.
///
/// # Errors
/// From the operating system.
pub(super) fn write(repository: &Path, packages: &[IndexEntries], date: Timestamp) -> io::Result<()> {
    fs::create_dir_all(repository.join("repodata"))?;
    let mut documents = RepositoryDocuments::new(date);
    for (at, (kind, root, attributes)) in DOCUMENTS.into_iter().enumerate() {
        let mut text = format!("{DECLARATION}<{root} {attributes} packages=\"{}\">\n", packages.len());
        for IndexEntries(elements) in packages {
            text.push_str(&elements[at]);
            text.push('\n');
        }
        text.push_str(&format!("</{root}>\n"));
        let compressed = gzip(text.as_bytes())?;
        let path = documents.add(kind, text.as_bytes(), &compressed);
        fs::write(repository.join(path), compressed)?;
    }
    let text = documents.to_xml().map_err(io::Error::other)?;
    fs::write(repository.join("repodata").join(repomd::FILE_NAME), text)
}

/// The packages of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RepositoryIndexes {
    pub(super) packages: Vec<PrimaryPackage>,
    pub(super) files: Vec<PackageFiles>,
}

#[derive(Deserialize)]
struct Document<T> {
    #[serde(default = "Vec::new")]
    package: Vec<T>,
}

/// `None` where an index is missing or is not one.
pub(super) fn read(repository: &Path) -> Option<RepositoryIndexes> {
    let text = fs::read_to_string(repository.join("repodata").join(repomd::FILE_NAME)).ok()?;
    let documents: RepositoryDocuments = quick_xml::de::from_str(&text).ok()?;
    let open = |kind: &str| {
        let file = fs::File::open(repository.join(documents.path(kind)?)).ok()?;
        let mut text = String::new();
        GzDecoder::new(file).read_to_string(&mut text).ok()?;
        Some(text)
    };
    let primary: Document<PrimaryPackage> = quick_xml::de::from_str(&open("primary")?).ok()?;
    let filelists: Document<PackageFiles> = quick_xml::de::from_str(&open("filelists")?).ok()?;
    Some(RepositoryIndexes { packages: primary.package, files: filelists.package })
}
