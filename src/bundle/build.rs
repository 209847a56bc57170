//! Builds a bundle: each part from the cache or from its sources, then the directory in one rename.
//!
//! # Guarantees
//! At any instant the output directory is the old bundle or the complete new one. Without changed inputs nothing is
//! done; a changed component is the only one that is built.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use futures::future::try_join_all;
use tokio::sync::Mutex;

use super::component::{Component, ComponentList, OperatingSystem};
use super::component_build::{self, ComponentBuilder, ComponentError, SourceMode};
use super::component_list;
use super::content::FileRecord;
use super::digest::Sha256;
use super::download::error::DownloadError;
use super::download::{DownloadLimits, Downloader, partial_file, system_authorities};
use super::entry::{self, Draft, Entry, EntryError, EntryPackage};
use super::event::{BundleEvent, BundleEvents};
use super::file_records::file_records_with;
use super::format::{self, CollectionRequest, FormatError, RepositoryFormat};
use super::manifest::{self, Bundle};
use super::oci_layout;
use super::origins::Origins;
use super::own_program::OwnProgram;
use super::release_source::ReleaseError;
use super::sbom::{self, SbomError};
use super::staging::{self, Staging, StagingError};
use super::sweep::sweep;
use super::worker_thread::on_worker_thread;
use crate::model::api_contract::API_VERSION;
use crate::model::platform::{Architecture, Platform};
use crate::pki::openpgp::{OpenPgpError, RepositoryKey};

/// Part of a bundle's inputs, and not of those of its parts. Changes with what is made of the parts.
const LAYOUT: &str = "2";

/// The inputs and paths of a build.
#[derive(Debug, Clone)]
pub struct BuildRequest {
    /// The components.
    pub list: ComponentList,
    /// The bundle's directory: absent, empty, or a bundle to replace.
    pub output: PathBuf,
    /// The directory of cached parts, preferably on the same file system.
    pub cache: PathBuf,
    /// The source of binaries.
    pub source: SourceMode,
    /// What a component of metalform itself is made of.
    pub program: OwnProgram,
    /// Signs RPM packages.
    pub package_key: Option<RepositoryKey>,
    /// URI of the distribution's archive; `None` for the one that the build machine uses.
    pub archive: Option<String>,
    /// Whether to refuse components that the list has no digests of.
    pub pinned: bool,
    /// Whether to download the distribution's packages again though no input changed.
    pub refresh: bool,
    /// Limits of the downloads of official artefacts.
    pub downloads: DownloadLimits,
    /// Date of the package indexes.
    pub now: jiff::Timestamp,
}

/// Why no bundle was built; an existing one is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Another build has locked the cache.
    #[error("another build is running in {cache}")]
    Busy {
        /// Path of the cache.
        cache: String,
    },
    /// The bundle's directory.
    #[error(transparent)]
    Staging(#[from] StagingError),
    /// The list of what it is made of.
    #[error(transparent)]
    Sbom(#[from] SbomError),
    /// Digests are required, and one is missing.
    #[error("component {component}: the component list has no digest of {what}")]
    NotPinned {
        /// Name of the component.
        component: String,
        /// A URL, or modules.
        what: String,
    },
    /// A component could not be built.
    #[error("component {component}")]
    Component {
        /// Name of the component.
        component: String,
        /// The first failure.
        source: ComponentError,
    },
    /// The packages of a distribution could not be collected.
    #[error("packages of {platform}")]
    Packages {
        /// Their platform.
        platform: Platform,
        /// The first failure.
        source: FormatError,
    },
    /// The package indexes could not be written.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The TLS client could not be set up.
    #[error(transparent)]
    Download(#[from] DownloadError),
    /// The key of packages.
    #[error(transparent)]
    PackageKey(OpenPgpError),
    /// The cache could not be used.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// A directory could not be written.
    #[error("cannot write {path}")]
    Write {
        /// The directory.
        path: String,
        /// From the operating system.
        source: io::Error,
    },
}

impl BuildError {
    /// The failed download that is the cause.
    pub fn download(&self) -> Option<&DownloadError> {
        match self {
            Self::Component { source: ComponentError::Release(ReleaseError::Download(error)), .. }
            | Self::Download(error) => Some(error),
            _ => None,
        }
    }
}

/// Builds the bundle and returns its manifest.
///
/// # Errors
/// The first failure. Nothing is replaced then; completed parts and what was downloaded remain in the cache.
pub async fn build(request: &BuildRequest, events: BundleEvents<'_>) -> Result<Bundle, BuildError> {
    if request.pinned {
        require_pins(request)?;
    }
    let not_packaged = not_packaged(request);
    let described = BuildRequest { list: request.program.described_in(&request.list), ..request.clone() };
    let request = &described;
    let inputs = inputs(request);
    if let Some(bundle) = present(&request.output, &inputs).filter(|_| !request.refresh) {
        events(BundleEvent::UpToDate { directory: request.output.clone() });
        return Ok(bundle);
    }
    staging::refuse_foreign(&request.output)?;
    not_packaged.into_iter().for_each(events);
    let _lock = lock(&request.cache)?;
    let sweep_cache = |prefix| {
        let write = |source| BuildError::Write { path: request.cache.display().to_string(), source };
        sweep(&request.cache, prefix).map_err(write)
    };
    sweep_cache(entry::DRAFT_PREFIX)?;
    let (mut parts, packages) = tokio::try_join!(components(request, events), packages(request, events))?;
    parts.extend(packages);
    let bundle = assemble(request, inputs, &parts).await?;
    // Of artefacts that no component of this list has.
    sweep_cache(partial_file::PREFIX)?;
    let size = bundle.files.values().map(|record| record.size).sum();
    events(BundleEvent::Written { directory: request.output.clone(), files: bundle.files.len(), size });
    Ok(bundle)
}

/// The architectures that metalform itself is not packaged for.
fn not_packaged(request: &BuildRequest) -> Vec<BundleEvent> {
    let BuildRequest { list, program, .. } = request;
    let own = list.components.iter().filter(|component| component.sources.program.is_some());
    let missing = own.flat_map(|component| {
        let architectures = list.architectures.iter().filter(|of| program.path(**of).is_none());
        architectures
            .map(|of| BundleEvent::NotPackaged { component: component.name.clone(), architecture: *of })
    });
    missing.collect()
}

fn require_pins(request: &BuildRequest) -> Result<(), BuildError> {
    request.list.components.iter().try_for_each(|component| {
        match component_build::first_unpinned(component, request.source, &request.list.architectures) {
            Some(what) => Err(BuildError::NotPinned { component: component.name.clone(), what }),
            None => Ok(()),
        }
    })
}

/// The list with the digest of everything that the bundle was made of.
fn pinned_list(list: &ComponentList, parts: &[Part]) -> ComponentList {
    let mut list = list.clone();
    for (name, _, entry) in parts {
        // As [`ComponentBuilder::part`] names it.
        let own = name.split_once(" (").map_or(name.as_str(), |(own, _)| own);
        let component = list.components.iter_mut().find(|component| component.name == own);
        if let Some(component) = component {
            entry.origins.pin(&mut component.sources);
        }
    }
    list
}

/// A component, or the packages of a platform: its name, cache key and content.
type Part = (String, Sha256, Entry);

async fn components(request: &BuildRequest, events: BundleEvents<'_>) -> Result<Vec<Part>, BuildError> {
    let downloader = Downloader::new(&request.cache, request.downloads, system_authorities(), events)?;
    let processors = Mutex::new(());
    let builder = |architecture: &Architecture| ComponentBuilder {
        downloader: &downloader,
        program: &request.program,
        package_key: request.package_key.as_ref(),
        processors: &processors,
        architecture: *architecture,
        is_one_of_several: request.list.architectures.len() > 1,
        mode: request.source,
        platforms: request.list.platforms_of(&[*architecture]),
        events,
    };
    let builders: Vec<_> = request.list.architectures.iter().map(builder).collect();
    let mut parts = Vec::new();
    for builder in &builders {
        let has_source = |one: &&Component| {
            one.sources.program.is_none() || request.program.path(builder.architecture).is_some()
        };
        let components = request.list.components.iter().filter(has_source);
        parts.extend(components.map(|one| component(request, builder, one)));
    }
    downloader.reporting(try_join_all(parts)).await
}

/// The cached images and packages of a component, or new ones of its cached binaries, or of new binaries.
async fn component(
    request: &BuildRequest,
    builder: &ComponentBuilder<'_>,
    component: &Component,
) -> Result<Part, BuildError> {
    let (cache, events) = (&request.cache, builder.events);
    let inputs = |binaries: &Entry| builder.inputs(component, binaries);
    let failed = |source| BuildError::Component { component: component.name.clone(), source };
    let binary_inputs = component_build::binary_inputs(component, (builder.architecture, builder.mode));
    let agrees = |binaries: &Entry| binaries.origins.agree_with(&component.sources);
    if let Some(binaries) = entry::recorded(cache, &binary_inputs).filter(agrees) {
        let inputs = inputs(&binaries);
        if let Some(entry) = entry::find(cache, &inputs) {
            events(BundleEvent::Reused { part: builder.part(component) });
            return Ok((builder.part(component), inputs, entry));
        }
    }
    let binaries = match entry::find(cache, &binary_inputs).filter(agrees) {
        Some(binaries) => {
            let origin = "cached binaries".to_owned();
            events(BundleEvent::Started { part: builder.part(component), origin });
            binaries
        }
        None => {
            let draft = Draft::new(cache, &binary_inputs)?;
            builder.build_binaries(component, draft).await.map_err(failed)?
        }
    };
    let inputs = inputs(&binaries);
    let build = async |draft: Draft| {
        let directory = entry::content(cache, &binary_inputs);
        builder.build(component, (&binaries, &directory), draft).await.map_err(failed)
    };
    // Binaries that were damaged or lost, and are the same again.
    let kept = entry::find(cache, &inputs);
    part(request, (builder.part(component), inputs, kept), events, build).await
}

async fn packages(request: &BuildRequest, events: BundleEvents<'_>) -> Result<Vec<Part>, BuildError> {
    let archive = request.archive.as_deref();
    let mut parts = Vec::new();
    for system in request.list.operating_systems.iter().filter(|system| !system.packages.is_empty()) {
        for platform in &system.platforms(&request.list.architectures) {
            let inputs = packages_inputs(system, platform, archive);
            let kept = entry::find(&request.cache, &inputs).filter(|_| !request.refresh);
            let collect = async |draft: Draft| {
                let origin = "the distribution's archive".to_owned();
                events(BundleEvent::Started { part: platform.to_string(), origin });
                collect_packages(&CollectionRequest { system, platform, archive }, draft).await
            };
            parts.push(part(request, (platform.to_string(), inputs, kept), events, collect).await?);
        }
    }
    Ok(parts)
}

async fn collect_packages(request: &CollectionRequest<'_>, draft: Draft) -> Result<Entry, BuildError> {
    // A list with another distribution was refused when it was parsed.
    let Some(format) = format::of_platform(request.platform) else {
        return Ok(draft.keep((String::new(), Origins::default()), BTreeMap::new(), Vec::new())?);
    };
    let failed = |source| BuildError::Packages { platform: request.platform.clone(), source };
    let provenance = format.collect(request, &draft).await.map_err(failed)?;
    let content = draft.content(format.directory())?;
    let platforms = std::slice::from_ref(request.platform);
    let packages = format.describe(&content, platforms).await.map_err(failed)?;
    Ok(on_worker_thread(move || draft.keep((provenance, Origins::default()), BTreeMap::new(), packages))
        .await?)
}

/// The cached part, or a new one.
async fn part(
    request: &BuildRequest,
    (name, inputs, kept): (String, Sha256, Option<Entry>),
    events: BundleEvents<'_>,
    build: impl AsyncFnOnce(Draft) -> Result<Entry, BuildError>,
) -> Result<Part, BuildError> {
    let part = name.clone();
    if let Some(entry) = kept {
        events(BundleEvent::Reused { part });
        return Ok((name, inputs, entry));
    }
    let entry = build(Draft::new(&request.cache, &inputs)?).await?;
    events(BundleEvent::Finished { part });
    Ok((name, inputs, entry))
}

/// The cache key of a platform's packages. The archive changes and the key does not: `refresh` downloads newer
/// packages.
fn packages_inputs(system: &OperatingSystem, platform: &Platform, archive: Option<&str>) -> Sha256 {
    let text = serde_json::to_vec(&(super::BUILDER, system, platform, archive))
        .expect("plain data with string keys can be serialised");
    Sha256::of(&text)
}

fn inputs(request: &BuildRequest) -> Sha256 {
    let key = request.package_key.as_ref().map(RepositoryKey::fingerprint);
    let text =
        serde_json::to_vec(&(super::BUILDER, LAYOUT, &request.list, request.source, &request.archive, key))
            .expect("plain data with string keys can be serialised");
    Sha256::of(&text)
}

/// The existing bundle, if it has these inputs, and no file is missing or has another size. `bundle verify` checks
/// digests.
fn present(output: &Path, inputs: &Sha256) -> Option<Bundle> {
    let bundle = Bundle::read(output).ok().filter(|bundle| bundle.inputs == *inputs)?;
    let is_there = |(path, record): (&String, &FileRecord)| {
        fs::metadata(output.join(path)).is_ok_and(|found| found.len() == record.size)
    };
    bundle.files.iter().all(is_there).then_some(bundle)
}

/// Held until dropped; the kernel releases it when the process ends.
fn lock(cache: &Path) -> Result<File, BuildError> {
    let cache_name = || cache.display().to_string();
    let write = |source| BuildError::Write { path: cache_name(), source };
    fs::create_dir_all(cache).map_err(write)?;
    let file = File::create(cache.join(".lock")).map_err(write)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(BuildError::Busy { cache: cache_name() }),
        Err(TryLockError::Error(source)) => Err(write(source)),
    }
}

async fn assemble(request: &BuildRequest, inputs: Sha256, parts: &[Part]) -> Result<Bundle, BuildError> {
    let write = |source| BuildError::Write { path: request.output.display().to_string(), source };
    let staging = Staging::new(&request.output)?;
    // Their digests were computed when the entries were found or added.
    let mut records = BTreeMap::new();
    for (_, inputs, entry) in parts {
        let content = entry::content(&request.cache, inputs);
        for (path, record) in &entry.files {
            link_or_copy(&content.join(path), &staging.path().join(path)).map_err(write)?;
            records.entry(path.clone()).or_insert_with(|| record.clone());
        }
    }
    let list = &request.list;
    let manifests = parts.iter().flat_map(|(_, _, entry)| &entry.images);
    let images = oci_layout::write_images(staging.path(), manifests).map_err(write)?;
    let packages = merged(parts.iter().flat_map(|(_, _, entry)| entry.packages.clone()));
    let platforms = list.platforms();
    for (format, platforms) in format::by_format(&platforms) {
        let content = staging.path().join(format.directory());
        write_key(request, format, &content)?;
        format.write_indexes(&content, &platforms, &packages, request.now).await?;
    }
    let recorded = pinned_list(list, parts).without_credentials();
    let text = serde_saphyr::to_string(&recorded).map_err(io::Error::other).map_err(write)?;
    fs::write(staging.path().join(component_list::FILE_NAME), text).map_err(write)?;
    let mut bundle = Bundle {
        api_version: API_VERSION.to_owned(),
        kind: "Bundle".to_owned(),
        inputs,
        architectures: list.architectures.clone(),
        platforms: platforms.into_iter().collect(),
        versions: list
            .components
            .iter()
            .map(|component| (component.name.clone(), component.version.clone()))
            .collect(),
        provenance: parts.iter().map(|(part, _, entry)| (part.clone(), entry.provenance.clone())).collect(),
        images,
        packages: packages.into_iter().map(|entry| entry.package).collect(),
        files: file_records_with(staging.path(), records).map_err(write)?,
    };
    let sbom = sbom::text(&bundle)?;
    fs::write(staging.path().join(sbom::FILE_NAME), &sbom).map_err(write)?;
    let record = FileRecord { sha256: Sha256::of(&sbom), size: sbom.len() as u64 };
    bundle.files.insert(sbom::FILE_NAME.to_owned(), record);
    let text = serde_saphyr::to_string(&bundle).map_err(io::Error::other).map_err(write)?;
    fs::write(staging.path().join(manifest::FILE_NAME), text).map_err(write)?;
    staging.publish()?;
    Ok(bundle)
}

/// Writes the public key of the packages.
fn write_key(
    request: &BuildRequest,
    format: &dyn RepositoryFormat,
    content: &Path,
) -> Result<(), BuildError> {
    let Some((file, key)) = format.key_file().zip(request.package_key.as_ref()) else { return Ok(()) };
    let path = content.join(file);
    let armor = key.public_armor().map_err(BuildError::PackageKey)?;
    path.parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(&path, armor))
        .map_err(|source| BuildError::Write { path: path.display().to_string(), source })
}

/// The packages in order, each once: one that is for every architecture was collected with those of each.
fn merged(packages: impl Iterator<Item = EntryPackage>) -> Vec<EntryPackage> {
    let mut merged: BTreeMap<String, EntryPackage> = BTreeMap::new();
    for mut entry in packages {
        match merged.get_mut(&entry.package.path) {
            Some(known) => known.package.platforms.append(&mut entry.package.platforms),
            None => drop(merged.insert(entry.package.path.clone(), entry)),
        }
    }
    let mut packages: Vec<_> = merged.into_values().collect();
    packages.sort_by(|a, b| a.package.cmp(&b.package));
    packages
}

/// Different parts may contain the same blob. The bundle shares its files with the cache where the file system
/// supports it.
fn link_or_copy(from: &Path, to: &Path) -> io::Result<()> {
    to.parent().map_or(Ok(()), fs::create_dir_all)?;
    match fs::hard_link(from, to) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => fs::copy(from, to).map(|_| ()),
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::content::BundledPackage;

    #[test]
    fn a_package_for_every_architecture_is_listed_once_for_the_platforms_of_all() {
        let entry = |path: &str, platform: &str| EntryPackage {
            package: BundledPackage {
                name: path.to_owned(),
                platforms: vec![platform.parse().unwrap()],
                version: "1".to_owned(),
                architecture: "all".to_owned(),
                path: format!("apt/pool/{path}"),
            },
            index_entry: String::new(),
        };
        let (amd64, arm64) = ("debian-13-amd64", "debian-13-arm64");
        let found = merged([entry("b", amd64), entry("a", amd64), entry("b", arm64)].into_iter());
        let platforms = |entry: &EntryPackage| {
            entry.package.platforms.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        let found: Vec<_> =
            found.iter().map(|entry| (entry.package.name.as_str(), platforms(entry))).collect();
        assert_eq!(found, [("a", amd64.to_owned()), ("b", format!("{amd64} {arm64}"))]);
    }
}
