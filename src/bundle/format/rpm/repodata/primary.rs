//! `primary.xml`: what a package manager needs to resolve dependencies and to download.

use rpm::{Dependency, DependencyFlags, IndexSignatureTag, PackageMetadata};
use serde::{Deserialize, Serialize};

use super::PackageFacts;
use super::xml::{self, Checksum, Location, PackageFile, PackageVersion};

/// A package. Texts without a value are empty elements, as createrepo_c writes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "package")]
pub(in crate::bundle::format::rpm) struct PrimaryPackage {
    #[serde(rename = "@type")]
    kind: String,
    pub(in crate::bundle::format::rpm) name: String,
    arch: String,
    version: PackageVersion,
    checksum: Checksum,
    summary: String,
    description: String,
    packager: String,
    url: String,
    time: Times,
    size: Sizes,
    location: Location,
    pub(in crate::bundle::format::rpm) format: Format,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Times {
    /// The build time: the modification time of a file would differ between two builds.
    #[serde(rename = "@file")]
    file: u64,
    #[serde(rename = "@build")]
    build: u64,
}

/// In bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Sizes {
    #[serde(rename = "@package")]
    package: u64,
    #[serde(rename = "@installed")]
    installed: u64,
    #[serde(rename = "@archive")]
    archive: u64,
}

/// What is RPM's own. `rpm:` is part of the names that are written, and not of those that are read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::bundle::format::rpm) struct Format {
    #[serde(rename(serialize = "rpm:license"))]
    license: String,
    #[serde(rename(serialize = "rpm:vendor"))]
    vendor: String,
    #[serde(rename(serialize = "rpm:group"))]
    group: String,
    #[serde(rename(serialize = "rpm:buildhost"))]
    buildhost: String,
    #[serde(rename(serialize = "rpm:sourcerpm"))]
    sourcerpm: String,
    #[serde(rename(serialize = "rpm:header-range", deserialize = "header-range"))]
    header_range: HeaderRange,
    #[serde(rename(serialize = "rpm:provides"), default, skip_serializing_if = "Entries::is_empty")]
    pub(in crate::bundle::format::rpm) provides: Entries,
    #[serde(rename(serialize = "rpm:requires"), default, skip_serializing_if = "Entries::is_empty")]
    pub(in crate::bundle::format::rpm) requires: Entries,
    #[serde(rename(serialize = "rpm:conflicts"), default, skip_serializing_if = "Entries::is_empty")]
    conflicts: Entries,
    #[serde(rename(serialize = "rpm:obsoletes"), default, skip_serializing_if = "Entries::is_empty")]
    obsoletes: Entries,
    #[serde(rename(serialize = "rpm:suggests"), default, skip_serializing_if = "Entries::is_empty")]
    suggests: Entries,
    #[serde(rename(serialize = "rpm:enhances"), default, skip_serializing_if = "Entries::is_empty")]
    enhances: Entries,
    #[serde(rename(serialize = "rpm:recommends"), default, skip_serializing_if = "Entries::is_empty")]
    recommends: Entries,
    #[serde(rename(serialize = "rpm:supplements"), default, skip_serializing_if = "Entries::is_empty")]
    supplements: Entries,
    /// Those that dependencies name most; `filelists.xml` has all.
    #[serde(default)]
    file: Vec<PackageFile>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct HeaderRange {
    #[serde(rename = "@start")]
    start: u64,
    #[serde(rename = "@end")]
    end: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::bundle::format::rpm) struct Entries {
    #[serde(rename(serialize = "rpm:entry"), default)]
    pub(in crate::bundle::format::rpm) entry: Vec<RelationEntry>,
}

/// A relation to other packages. Without a version it has none of the attributes after the name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::bundle::format::rpm) struct RelationEntry {
    #[serde(rename = "@name")]
    pub(in crate::bundle::format::rpm) name: String,
    /// `EQ`, `LT`, `LE`, `GE` or `GT`.
    #[serde(rename = "@flags", default, skip_serializing_if = "Option::is_none")]
    pub(in crate::bundle::format::rpm) flags: Option<String>,
    #[serde(rename = "@epoch", default, skip_serializing_if = "Option::is_none")]
    pub(in crate::bundle::format::rpm) epoch: Option<String>,
    #[serde(rename = "@ver", default, skip_serializing_if = "Option::is_none")]
    pub(in crate::bundle::format::rpm) version: Option<String>,
    #[serde(rename = "@rel", default, skip_serializing_if = "Option::is_none")]
    pub(in crate::bundle::format::rpm) release: Option<String>,
    /// `1` for what must be there before the scripts of the package run.
    #[serde(rename = "@pre", default, skip_serializing_if = "Option::is_none")]
    pre: Option<String>,
}

/// The document's entry for a package.
///
/// # Errors
/// For a header without a mandatory tag.
pub(super) fn package(facts: &PackageFacts<'_>) -> Result<PrimaryPackage, rpm::Error> {
    let PackageFacts { metadata, path, digest, size } = *facts;
    let build = metadata.get_build_time()?;
    let archive = metadata
        .signature
        .get_entry_data_as_u64(IndexSignatureTag::RPMSIGTAG_LONGARCHIVESIZE)
        .or_else(|_| {
            let size = metadata.signature.get_entry_data_as_u32(IndexSignatureTag::RPMSIGTAG_PAYLOADSIZE);
            size.map(u64::from)
        });
    Ok(PrimaryPackage {
        kind: "rpm".to_owned(),
        name: metadata.get_name()?.to_owned(),
        arch: metadata.get_arch()?.to_owned(),
        version: facts.version()?,
        checksum: Checksum {
            kind: "sha256".to_owned(),
            pkgid: Some("YES".to_owned()),
            digest: digest.to_string(),
        },
        summary: optional(metadata.get_summary()),
        description: optional(metadata.get_description()),
        packager: optional(metadata.get_packager()),
        url: optional(metadata.get_url()),
        time: Times { file: build, build },
        size: Sizes {
            package: size,
            installed: metadata.get_installed_size()?,
            // Optional, and not part of packages that rpm-rs builds.
            archive: archive.unwrap_or_default(),
        },
        // Repositories are beside the pool.
        location: Location { href: format!("../{path}") },
        format: format(metadata)?,
    })
}

fn format(metadata: &PackageMetadata) -> Result<Format, rpm::Error> {
    let range = metadata.get_package_segment_offsets();
    let files = super::filelists::files(metadata)?;
    let owns = |dependency: &Dependency| files.iter().any(|file| file.path == dependency.name);
    let requires = metadata.get_requires()?;
    // rpm itself provides the former, the package the latter.
    let of_others = |one: &Dependency| !one.flags.contains(DependencyFlags::RPMLIB) && !owns(one);
    let requires = requires.into_iter().filter(of_others).collect();
    Ok(Format {
        license: optional(metadata.get_license()),
        vendor: optional(metadata.get_vendor()),
        group: optional(metadata.get_group()),
        buildhost: optional(metadata.get_build_host()),
        sourcerpm: optional(metadata.get_source_rpm()),
        header_range: HeaderRange { start: range.header, end: range.payload },
        provides: entries(metadata.get_provides()?),
        requires: entries(requires),
        conflicts: entries(metadata.get_conflicts()?),
        obsoletes: entries(metadata.get_obsoletes()?),
        suggests: entries(metadata.get_suggests()?),
        enhances: entries(metadata.get_enhances()?),
        recommends: entries(metadata.get_recommends()?),
        supplements: entries(metadata.get_supplements()?),
        file: files.into_iter().filter(|file| is_primary(&file.path)).collect(),
    })
}

/// A tag that a package may not have.
fn optional(value: Result<&str, rpm::Error>) -> String {
    xml::text(value.unwrap_or_default())
}

/// Each relation once, in the order of the header.
fn entries(dependencies: Vec<Dependency>) -> Entries {
    let mut entry = Vec::new();
    for found in dependencies.iter().map(relation) {
        if !entry.contains(&found) {
            entry.push(found);
        }
    }
    Entries { entry }
}

fn relation(dependency: &Dependency) -> RelationEntry {
    let flags = match dependency.flags.comparator_str() {
        "=" => Some("EQ"),
        "<" => Some("LT"),
        "<=" => Some("LE"),
        ">" => Some("GT"),
        ">=" => Some("GE"),
        _ => None,
    };
    let before = DependencyFlags::PREREQ | DependencyFlags::SCRIPT_PRE | DependencyFlags::SCRIPT_POST;
    let (epoch, version, release) = rpm_version::Evr::parse_values(&dependency.version);
    let versioned = |text: &str| flags.is_some().then(|| xml::text(text));
    RelationEntry {
        name: xml::text(&dependency.name),
        flags: flags.map(str::to_owned),
        epoch: versioned(if epoch.is_empty() { "0" } else { epoch }),
        version: versioned(version),
        release: versioned(release).filter(|release| !release.is_empty()),
        pre: dependency.flags.intersects(before).then(|| "1".to_owned()),
    }
}

/// As createrepo_c decides it.
fn is_primary(path: &str) -> bool {
    path.starts_with("/etc/") || path.contains("bin/") || path == "/usr/lib/sendmail"
}

impl Entries {
    fn is_empty(&self) -> bool {
        self.entry.is_empty()
    }
}
