//! Makes a bundle: every part from the cache or anew, then the directory in one move.
//!
//! # Guarantees
//! The output directory is the old bundle or the whole new one at any instant. Nothing is done when nothing
//! changed; a changed component is the only one that is built.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::apt_repository;
use super::component::{API_VERSION, ComponentList};
use super::component_build::{self, ComponentBuilder, ComponentError, SourceMode};
use super::digest::Sha256;
use super::download::{DownloadError, Downloader};
use super::entry::{self, Draft, Entry, EntryError};
use super::event::{BundleEvent, Events};
use super::manifest::{self, Bundle};
use super::oci_layout;
use super::os_packages::{self, OsPackagesError};

/// What to build, and where.
#[derive(Debug, Clone)]
pub struct BuildRequest {
    /// What the bundle is made from.
    pub list: ComponentList,
    /// The bundle's directory: new, empty, or a bundle that may be replaced.
    pub output: PathBuf,
    /// Where parts are kept between builds; best on the same file system.
    pub cache: PathBuf,
    /// Which source binaries come from.
    pub source: SourceMode,
    /// URI of the distribution's archive; `None` is what the build machine itself uses.
    pub archive: Option<String>,
    /// Whether to ask the distribution's archive again though nothing changed here.
    pub refresh: bool,
    /// Of the package indices.
    pub now: jiff::Timestamp,
}

/// Why no bundle was made; the old one, if any, is as it was.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Another build uses the cache.
    #[error("another build is under way in {cache}")]
    Busy {
        /// The cache.
        cache: String,
    },
    /// Replacing the directory would destroy what metalform did not make.
    #[error("{output} is not empty and not a bundle")]
    NotABundle {
        /// As asked for.
        output: String,
    },
    /// A component failed.
    #[error("component {component}")]
    Component {
        /// Its name.
        component: String,
        /// Why.
        source: ComponentError,
    },
    /// A system's packages failed.
    #[error("packages of {codename}")]
    System {
        /// Its codename.
        codename: String,
        /// Why.
        source: OsPackagesError,
    },
    /// As it says.
    #[error(transparent)]
    Download(#[from] DownloadError),
    /// As it says.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// The directory cannot be written.
    #[error("{path} cannot be written")]
    Write {
        /// What was written.
        path: String,
        /// What the system said.
        source: io::Error,
    },
}

/// Brings `request.output` to what the list says, and returns what is in it.
///
/// # Errors
/// The first part that fails; nothing is replaced then, and the parts that were done are kept.
pub async fn build(request: &BuildRequest, events: Events<'_>) -> Result<Bundle, BuildError> {
    let inputs = inputs(request);
    if let Some(bundle) = present(&request.output, &inputs).filter(|_| !request.refresh) {
        events(BundleEvent::UpToDate { directory: request.output.clone() });
        return Ok(bundle);
    }
    refuse_foreign(&request.output)?;
    let _lock = lock(&request.cache)?;
    sweep(&request.cache, entry::DRAFT_PREFIX)
        .map_err(|source| BuildError::Write { path: request.cache.display().to_string(), source })?;
    let (mut parts, systems) = tokio::try_join!(components(request, events), systems(request, events))?;
    parts.extend(systems);
    let write = |source| BuildError::Write { path: request.output.display().to_string(), source };
    let bundle = assemble(request, inputs, &parts).map_err(write)?;
    let size = bundle.files.values().map(|record| record.size).sum();
    events(BundleEvent::Written { directory: request.output.clone(), files: bundle.files.len(), size });
    Ok(bundle)
}

/// A part's name, the key of its entry, and the entry.
type Part = (String, Sha256, Entry);

async fn components(request: &BuildRequest, events: Events<'_>) -> Result<Vec<Part>, BuildError> {
    let codenames: Vec<_> =
        request.list.operating_systems.iter().map(|system| system.codename.clone()).collect();
    let architecture = request.list.architecture;
    let downloader = Downloader::new()?;
    let builder = ComponentBuilder {
        downloader: &downloader,
        architecture,
        mode: request.source,
        systems: &codenames,
        events,
    };
    let mut parts = Vec::new();
    for component in &request.list.components {
        let part = component.name.clone();
        let inputs = component_build::inputs(component, (architecture, request.source, &codenames));
        let entry = match entry::find(&request.cache, &inputs) {
            Some(entry) => {
                events(BundleEvent::Reused { part: part.clone() });
                entry
            }
            None => {
                let built = builder.build(component, Draft::new(&request.cache, &inputs)?).await;
                let built =
                    built.map_err(|source| BuildError::Component { component: part.clone(), source })?;
                events(BundleEvent::Finished { part: part.clone() });
                built
            }
        };
        parts.push((part, inputs, entry));
    }
    Ok(parts)
}

async fn systems(request: &BuildRequest, events: Events<'_>) -> Result<Vec<Part>, BuildError> {
    let (architecture, archive) = (request.list.architecture, request.archive.as_deref());
    let mut parts = Vec::new();
    for system in &request.list.operating_systems {
        let part = system.codename.clone();
        let inputs = os_packages::inputs(system, architecture, archive);
        let kept = if request.refresh { None } else { entry::find(&request.cache, &inputs) };
        let entry = match kept {
            Some(entry) => {
                events(BundleEvent::Reused { part: part.clone() });
                entry
            }
            None => {
                let origin = "the distribution's archive".to_owned();
                events(BundleEvent::Started { part: part.clone(), origin });
                let draft = Draft::new(&request.cache, &inputs)?;
                let built = os_packages::collect(system, architecture, archive, draft).await;
                let built = built.map_err(|source| BuildError::System { codename: part.clone(), source })?;
                events(BundleEvent::Finished { part: part.clone() });
                built
            }
        };
        parts.push((part, inputs, entry));
    }
    Ok(parts)
}

fn inputs(request: &BuildRequest) -> Sha256 {
    let text = serde_json::to_vec(&(super::BUILDER, &request.list, request.source, &request.archive))
        .expect("serialises, because a component list is plain data with text keys");
    Sha256::of(&text)
}

/// The bundle that is there already, if its inputs are these and no file went missing or changed its size.
/// Digests are what `bundle verify` is for.
fn present(output: &Path, inputs: &Sha256) -> Option<Bundle> {
    let bundle = Bundle::read(output).ok().filter(|bundle| bundle.inputs == *inputs)?;
    let is_there = |(path, record): (&String, &manifest::FileRecord)| {
        fs::metadata(output.join(path)).is_ok_and(|found| found.len() == record.size)
    };
    bundle.files.iter().all(is_there).then_some(bundle)
}

fn refuse_foreign(output: &Path) -> Result<(), BuildError> {
    let has_entries = fs::read_dir(output).is_ok_and(|mut entries| entries.next().is_some());
    if has_entries && !output.join(manifest::FILE_NAME).exists() {
        return Err(BuildError::NotABundle { output: output.display().to_string() });
    }
    Ok(())
}

/// Held until dropped; the kernel lets go of it when the process dies.
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

/// Removes what a killed build left; under the lock nobody else's work has such a name.
fn sweep(directory: &Path, prefix: &str) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

fn assemble(request: &BuildRequest, inputs: Sha256, parts: &[Part]) -> io::Result<Bundle> {
    let parent = match request.output.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(parent)?;
    let name = request.output.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy();
    let prefix = format!(".{name}.new-");
    sweep(parent, &prefix)?;
    let staging = tempfile::Builder::new().prefix(&prefix).tempdir_in(parent)?;
    fs::set_permissions(staging.path(), fs::Permissions::from_mode(0o755))?;
    for (_, inputs, entry) in parts {
        let content = entry::content(&request.cache, inputs);
        entry.files.keys().try_for_each(|path| place(&content.join(path), &staging.path().join(path)))?;
    }
    let list = &request.list;
    let images: BTreeMap<_, _> = parts.iter().flat_map(|(_, _, entry)| entry.images.clone()).collect();
    let mut packages: Vec<_> = parts.iter().flat_map(|(_, _, entry)| entry.packages.clone()).collect();
    packages.sort_by(|a, b| a.package.cmp(&b.package));
    for system in &list.operating_systems {
        let index = (system.codename.as_str(), list.architecture);
        apt_repository::write_indices(staging.path(), index, &packages, request.now)?;
    }
    oci_layout::write_index(staging.path(), &images, list.architecture)?;
    let bundle = Bundle {
        api_version: API_VERSION.to_owned(),
        kind: "Bundle".to_owned(),
        inputs,
        architecture: list.architecture,
        versions: list
            .components
            .iter()
            .map(|component| (component.name.clone(), component.version.clone()))
            .collect(),
        provenance: parts.iter().map(|(part, _, entry)| (part.clone(), entry.provenance.clone())).collect(),
        images,
        packages: packages.into_iter().map(|entry| entry.package).collect(),
        files: entry::records(staging.path())?,
    };
    let text = serde_saphyr::to_string(&bundle).map_err(io::Error::other)?;
    fs::write(staging.path().join(manifest::FILE_NAME), text)?;
    // A rename that outlives a power cut must not name files that did not.
    rustix::fs::syncfs(File::open(staging.path())?)?;
    replace(staging, &request.output)?;
    Ok(bundle)
}

/// Files of different parts may be one (equal blobs). The bundle shares its files with the cache where the
/// file system lets it.
fn place(from: &Path, to: &Path) -> io::Result<()> {
    to.parent().map_or(Ok(()), fs::create_dir_all)?;
    match fs::hard_link(from, to) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => fs::copy(from, to).map(|_| ()),
        outcome => outcome,
    }
}

fn replace(staging: tempfile::TempDir, output: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    if output.exists() {
        renameat_with(CWD, staging.path(), CWD, output, RenameFlags::EXCHANGE)?;
        // What lies there now is the old bundle.
        return staging.close();
    }
    fs::rename(staging.keep(), output)
}
