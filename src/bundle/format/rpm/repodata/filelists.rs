//! `filelists.xml`: every file of every package.

use rpm::{FileFlags, FileType, PackageMetadata};
use serde::{Deserialize, Serialize};

use super::PackageFacts;
use super::xml::{self, PackageFile, PackageVersion};

/// A package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "package")]
pub(in crate::bundle::format::rpm) struct PackageFiles {
    /// SHA-256 of the package.
    #[serde(rename = "@pkgid")]
    pkgid: String,
    #[serde(rename = "@name")]
    pub(in crate::bundle::format::rpm) name: String,
    #[serde(rename = "@arch")]
    arch: String,
    version: PackageVersion,
    #[serde(default)]
    pub(in crate::bundle::format::rpm) file: Vec<PackageFile>,
}

/// The document's entry for a package.
///
/// # Errors
/// For a header without a mandatory tag.
pub(super) fn package(facts: &PackageFacts<'_>) -> Result<PackageFiles, rpm::Error> {
    Ok(PackageFiles {
        pkgid: facts.digest.to_string(),
        name: facts.metadata.get_name()?.to_owned(),
        arch: facts.metadata.get_arch()?.to_owned(),
        version: facts.version()?,
        file: files(facts.metadata)?,
    })
}

/// The files of a package, with their kinds.
///
/// # Errors
/// For a header whose arrays do not match.
pub(super) fn files(metadata: &PackageMetadata) -> Result<Vec<PackageFile>, rpm::Error> {
    let file = |file: &rpm::FileEntry<'_>| {
        let kind = if file.mode().file_type() == FileType::Dir {
            Some("dir")
        } else if file.flags().contains(FileFlags::GHOST) {
            Some("ghost")
        } else {
            None
        };
        PackageFile { kind: kind.map(str::to_owned), path: xml::text(&file.path().to_string_lossy()) }
    };
    Ok(metadata.get_file_entries()?.iter().map(file).collect())
}
