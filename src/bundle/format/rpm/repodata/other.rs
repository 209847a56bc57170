//! `other.xml`: the changelogs.

use serde::{Deserialize, Serialize};

use super::PackageFacts;
use super::xml::{self, PackageVersion};

/// The number of entries that a package's changelog has here, as createrepo_c limits it.
const NEWEST: usize = 10;

/// A package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "package")]
pub(super) struct PackageChanges {
    /// SHA-256 of the package.
    #[serde(rename = "@pkgid")]
    pkgid: String,
    #[serde(rename = "@name")]
    name: String,
    #[serde(rename = "@arch")]
    arch: String,
    version: PackageVersion,
    /// From old to new.
    #[serde(default)]
    changelog: Vec<Change>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Change {
    #[serde(rename = "@author")]
    author: String,
    /// In seconds since 1970.
    #[serde(rename = "@date")]
    date: u64,
    #[serde(rename = "$text")]
    text: String,
}

/// The document's entry for a package.
///
/// # Errors
/// For a header without a mandatory tag.
pub(super) fn package(facts: &PackageFacts<'_>) -> Result<PackageChanges, rpm::Error> {
    // From new to old.
    let entries = facts.metadata.get_changelog_entries().unwrap_or_default();
    let change = |entry: &rpm::ChangelogEntry| Change {
        author: xml::text(&entry.name),
        date: entry.timestamp,
        text: xml::text(&entry.description),
    };
    Ok(PackageChanges {
        pkgid: facts.digest.to_string(),
        name: facts.metadata.get_name()?.to_owned(),
        arch: facts.metadata.get_arch()?.to_owned(),
        version: facts.version()?,
        changelog: entries.iter().take(NEWEST).rev().map(change).collect(),
    })
}
