//! Builds a component: its binaries from one of its sources, then its images and packages.
//!
//! The two are cached apart. Compiling takes minutes and packaging seconds, and a package's description or dependency
//! changes more often than a version: see [`binary_inputs`] and [`inputs`].

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use tokio::sync::Mutex;

use super::component::{Component, ImageComponent, PackageComponent};
use super::digest::Sha256;
use super::download::Downloader;
use super::entry::{Draft, Entry, EntryError, EntryPackage};
use super::event::{BundleEvent, BundleEvents};
use super::format::{self, FormatError, PackageBuild};
use super::go_source::{self, GoError};
use super::image::{self, ImageError};
use super::libraries::{self, Libraries};
use super::oci_layout;
use super::origins::{self, Origins};
use super::own_program::OwnProgram;
use super::release_source::{self, ReleaseError};
use super::worker_thread::on_worker_thread;
use crate::model::platform::{Architecture, Platform};
use crate::pki::openpgp::RepositoryKey;

/// The source of binaries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceMode {
    /// Official artefacts only.
    Release,
    /// Go modules only.
    Go,
    /// Official artefacts where they are available, otherwise Go modules.
    #[default]
    Auto,
}

/// Why a component was not built.
#[derive(Debug, thiserror::Error)]
pub enum ComponentError {
    /// The official artefacts.
    #[error(transparent)]
    Release(#[from] ReleaseError),
    /// The Go module.
    #[error(transparent)]
    Go(#[from] GoError),
    /// An image.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// A package.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The cache.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// A binary of a package.
    #[error("cannot read {path}")]
    Binary {
        /// In the cache, or the program of metalform.
        path: String,
        /// From the operating system.
        source: io::Error,
    },
    /// The program of metalform is another one than at the beginning.
    #[error("{path} was replaced meanwhile")]
    Replaced {
        /// As given.
        path: String,
    },
    /// The mode requires a source that the list does not have.
    #[error("the component list has no {mode} source")]
    NoSuchSource {
        /// `release` or `go`.
        mode: &'static str,
    },
}

/// The parameters of a build that all components share.
pub(super) struct ComponentBuilder<'a> {
    pub(super) downloader: &'a Downloader<'a>,
    pub(super) program: &'a OwnProgram,
    pub(super) package_key: Option<&'a RepositoryKey>,
    /// Held by the component that uses the processors: downloads are side by side, compilers and compression are not.
    pub(super) processors: &'a Mutex<()>,
    pub(super) architecture: Architecture,
    /// Whether the same component is built for other architectures too.
    pub(super) is_one_of_several: bool,
    pub(super) mode: SourceMode,
    /// Those of the architecture.
    pub(super) platforms: Vec<Platform>,
    pub(super) events: BundleEvents<'a>,
}

/// Changes with everything that changes the bytes of binaries and is not in a component: the flags of the compiler, the
/// wrapper module. Not the version of metalform, so that a new one compiles nothing again.
const BINARY_BUILDER: &str = "1";

impl ComponentBuilder<'_> {
    /// A component in events and in the provenance: `etcd`, with several architectures `etcd (arm64)`.
    pub(super) fn part(&self, component: &Component) -> String {
        match self.is_one_of_several {
            true => format!("{} ({})", component.name, self.architecture),
            false => component.name.clone(),
        }
    }

    /// The binaries of a component, as an entry of their own: its files are named as the binaries are.
    ///
    /// # Errors
    /// The first artefact that is unavailable, or that cannot be built.
    pub(super) async fn build_binaries(
        &self,
        component: &Component,
        draft: Draft,
    ) -> Result<Entry, ComponentError> {
        let made_of = self.binaries(component, &draft).await?;
        Ok(on_worker_thread(move || draft.keep(made_of, BTreeMap::new(), Vec::new())).await?)
    }

    /// The images and packages of a component, of the binaries of an entry in its directory.
    ///
    /// # Errors
    /// The first that cannot be built.
    pub(super) async fn build(
        &self,
        component: &Component,
        (binaries, directory): (&Entry, &Path),
        draft: Draft,
    ) -> Result<Entry, ComponentError> {
        let _held = self.processors.lock().await;
        let mut images = BTreeMap::new();
        for image in &component.images {
            let reference = component.expand(&image.reference, self.architecture);
            let digest = self.image((image, &reference), &draft, directory).await?;
            images.insert(reference, digest);
        }
        let packages = self.packages(component, &draft, directory).await?;
        let made_of = (binaries.provenance.clone(), binaries.origins.clone());
        Ok(on_worker_thread(move || draft.keep(made_of, images, packages)).await?)
    }

    async fn image(
        &self,
        (image, reference): (&ImageComponent, &str),
        draft: &Draft,
        binaries: &Path,
    ) -> Result<Sha256, ComponentError> {
        let blobs = draft.content(oci_layout::BLOBS)?;
        let (image, reference, binaries) = (image.clone(), reference.to_owned(), binaries.to_owned());
        let architecture = self.architecture;
        let make = move || image::make((&image, &reference), architecture, &binaries, &blobs);
        Ok(on_worker_thread(make).await?)
    }

    async fn packages(
        &self,
        component: &Component,
        draft: &Draft,
        binaries: &Path,
    ) -> Result<Vec<EntryPackage>, ComponentError> {
        if component.packages.is_empty() {
            return Ok(Vec::new());
        }
        let mut described = Vec::new();
        for (format, platforms) in format::by_format(&self.platforms) {
            let content = draft.content(format.directory())?;
            for package in &component.packages {
                let work = draft.scratch(&format!("{}/{}", format.directory(), package.name))?;
                let build = PackageBuild {
                    component,
                    package,
                    architecture: self.architecture,
                    binaries,
                    libraries: &libraries_of(package, binaries)?,
                    documents: self.documents(component),
                    key: self.package_key,
                };
                format.build(&build, &work, &content).await?;
            }
            described.extend(format.describe(&content, &platforms).await?);
        }
        Ok(described)
    }

    /// Of metalform alone.
    fn documents(&self, component: &Component) -> &BTreeMap<String, String> {
        const NONE: &BTreeMap<String, String> = &BTreeMap::new();
        if component.sources.program.is_some() { self.program.documents() } else { NONE }
    }

    /// The cache key of what is made of these binaries.
    pub(super) fn inputs(&self, component: &Component, binaries: &Entry) -> Sha256 {
        let key = self.package_key.map(RepositoryKey::fingerprint);
        inputs(component, binaries, (self.architecture, &self.platforms, self.documents(component), key))
    }

    /// Returns the provenance, and digests of it. What a source that failed has left is not part of the entry.
    async fn binaries(
        &self,
        component: &Component,
        draft: &Draft,
    ) -> Result<(String, Origins), ComponentError> {
        let has_release = !component.sources.release.is_empty();
        match self.mode {
            _ if component.sources.program.is_some() => self.own(component, draft).await,
            SourceMode::Release if !has_release => Err(ComponentError::NoSuchSource { mode: "release" }),
            SourceMode::Release => self.release(component, draft).await,
            SourceMode::Auto if has_release => match self.release(component, draft).await {
                Err(ComponentError::Release(ReleaseError::Download(error)))
                    if error.is_absence() && component.sources.go.is_some() =>
                {
                    let reason = error.to_string();
                    (self.events)(BundleEvent::FellBack { part: self.part(component), reason });
                    self.go(component, draft).await
                }
                outcome => outcome,
            },
            SourceMode::Go | SourceMode::Auto => self.go(component, draft).await,
        }
    }

    /// A copy of the program for the architecture.
    async fn own(&self, component: &Component, draft: &Draft) -> Result<(String, Origins), ComponentError> {
        let origin = format!("program: metalform {}", component.version);
        (self.events)(BundleEvent::Started { part: self.part(component), origin: origin.clone() });
        let into = draft.scratch("program")?;
        let program = component.sources.program.as_ref().zip(self.program.path(self.architecture));
        if let Some((own, path)) = program {
            let failed = |source| ComponentError::Binary { path: path.display().to_string(), source };
            let copy = into.join(&own.binary);
            fs::copy(path, &copy).map_err(failed)?;
            let (found, _) = Sha256::of_file(&copy).map_err(failed)?;
            if own.sha256.get(&self.architecture) != Some(&found) {
                return Err(ComponentError::Replaced { path: path.display().to_string() });
            }
        }
        draft.adopt(&into)?;
        Ok((origin, Origins::default()))
    }

    async fn release(
        &self,
        component: &Component,
        draft: &Draft,
    ) -> Result<(String, Origins), ComponentError> {
        let into = draft.scratch("release")?;
        let origin = "official artefacts".to_owned();
        (self.events)(BundleEvent::Started { part: self.part(component), origin });
        let origins = release_source::fetch(self.downloader, component, self.architecture, &into).await?;
        draft.adopt(&into)?;
        let urls = component
            .sources
            .release
            .iter()
            .map(|artefact| component.expand(&artefact.url, self.architecture));
        Ok((format!("release: {}", urls.collect::<Vec<_>>().join(" ")), origins))
    }

    async fn go(&self, component: &Component, draft: &Draft) -> Result<(String, Origins), ComponentError> {
        let source = component.sources.go.as_ref().ok_or(ComponentError::NoSuchSource { mode: "go" })?;
        let modules = super::go_module::required(component, source, self.architecture);
        let modules =
            modules.into_iter().map(|(path, version)| format!(" {path}@{version}")).collect::<String>();
        let modules = if modules.is_empty() { " source in the list" } else { &modules };
        let provenance = format!("go:{modules}");
        let _held = self.processors.lock().await;
        (self.events)(BundleEvent::Started { part: self.part(component), origin: provenance.clone() });
        let (module, into) = (draft.scratch("module")?, draft.scratch("go")?);
        let origins = go_source::build(component, source, self.architecture, (&module, &into)).await?;
        draft.adopt(&into)?;
        Ok((provenance, origins))
    }
}

/// A source that the mode may use, and that the list has no digest of: a URL, or modules.
pub(super) fn first_unpinned(
    component: &Component,
    mode: SourceMode,
    architectures: &[Architecture],
) -> Option<String> {
    let is_pinned = |sha256: &BTreeMap<Architecture, Sha256>| {
        architectures.iter().all(|architecture| sha256.contains_key(architecture))
    };
    let sources = &component.sources;
    let mut artefacts = sources.release.iter().filter(|_| mode != SourceMode::Go);
    let artefact = artefacts.find(|artefact| !is_pinned(&artefact.sha256)).map(|one| one.url.clone());
    let go = sources.go.as_ref().filter(|_| mode != SourceMode::Release);
    let modules = go.filter(|go| go.sum.is_none() && !go.requires.is_empty());
    artefact.or_else(|| modules.map(|_| "its Go source".to_owned()))
}

/// The cache key of the binaries of a component: everything that determines their bytes. Digests in the list are compared
/// with those of the entry ([`Origins::agree_with`]), so that adding them compiles nothing again.
pub(super) fn binary_inputs(component: &Component, builder: (Architecture, SourceMode)) -> Sha256 {
    let Component { name, version, sources, .. } = component;
    digest_of(&(BINARY_BUILDER, name, version, origins::unpinned(sources), builder))
}

/// The libraries of all binaries of a package.
fn libraries_of(package: &PackageComponent, binaries: &Path) -> Result<Libraries, ComponentError> {
    let mut libraries = Libraries::new();
    for path in package.files.values().map(|binary| binaries.join(binary)) {
        let found = libraries::of_file(&path);
        let failed = |source| ComponentError::Binary { path: path.display().to_string(), source };
        for (library, mut versions) in found.map_err(failed)? {
            libraries.entry(library).or_default().append(&mut versions);
        }
    }
    Ok(libraries)
}

/// The cache key of a component: its binaries, and everything that determines the bytes of what is made of them.
fn inputs(
    component: &Component,
    binaries: &Entry,
    builder: (Architecture, &[Platform], &BTreeMap<String, String>, Option<String>),
) -> Sha256 {
    let Entry { provenance, origins, files, .. } = binaries;
    digest_of(&(super::BUILDER, Description::of(component), provenance, origins, files, builder))
}

/// What a component has besides its sources.
#[derive(serde::Serialize)]
struct Description<'a> {
    name: &'a str,
    version: &'a str,
    license: Option<&'a str>,
    copyright: Option<&'a str>,
    homepage: Option<&'a str>,
    images: &'a [ImageComponent],
    packages: &'a [PackageComponent],
}

impl<'a> Description<'a> {
    fn of(component: &'a Component) -> Self {
        // Without `..`: a new field is either a source or a description.
        let Component { name, version, license, copyright, homepage, sources: _, images, packages } =
            component;
        let (license, copyright, homepage) = (license.as_deref(), copyright.as_deref(), homepage.as_deref());
        Self { name, version, license, copyright, homepage, images, packages }
    }
}

fn digest_of(inputs: &impl serde::Serialize) -> Sha256 {
    let text = serde_json::to_vec(inputs).expect("plain data with string keys can be serialised");
    Sha256::of(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_mode_may_use_is_pinned() {
        let digits = "a".repeat(64);
        let (sha256, sum) = (format!(", sha256: {{ amd64: {digits} }}"), format!(", sum: {digits}"));
        let (none, url, go) = (String::new(), Some("u"), Some("its Go source"));
        let cases = [
            (&none, &none, [url, go, url]),
            (&sha256, &none, [None, go, go]),
            (&none, &sum, [url, None, url]),
            (&sha256, &sum, [None, None, None]),
        ];
        for (sha256, sum, expected) in cases {
            let text = format!(
                "{{ name: tool, version: 1.0.0, sources: {{ release: [{{ url: u, binary: tool{sha256} }}], \
                 go: {{ requires: {{ m: v1 }}, packages: {{ tool: m }}{sum} }} }} }}"
            );
            let component: Component = serde_saphyr::from_str(&text).unwrap();
            let found = [SourceMode::Release, SourceMode::Go, SourceMode::Auto]
                .map(|mode| first_unpinned(&component, mode, &[Architecture::Amd64]));
            assert_eq!(found.each_ref().map(Option::as_deref), expected, "{text}");
        }
    }
}
