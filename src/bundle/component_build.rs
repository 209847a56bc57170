//! Builds a component: its binaries from one of its sources, then its images and packages.

use std::collections::BTreeMap;
use std::path::Path;

use tokio::sync::Mutex;

use super::component::{Component, ImageComponent};
use super::digest::Sha256;
use super::download::Downloader;
use super::entry::{Draft, Entry, EntryError, EntryPackage};
use super::event::{BundleEvent, BundleEvents};
use super::format::{self, FormatError, PackageBuild};
use super::go_source::{self, GoError};
use super::image::{self, ImageError};
use super::oci_layout;
use super::release_source::{self, ReleaseError};
use super::worker_thread::on_worker_thread;
use crate::model::platform::{Architecture, Platform};

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

impl ComponentBuilder<'_> {
    /// A component in events and in the provenance: `etcd`, with several architectures `etcd (arm64)`.
    pub(super) fn part(&self, component: &Component) -> String {
        match self.is_one_of_several {
            true => format!("{} ({})", component.name, self.architecture),
            false => component.name.clone(),
        }
    }

    /// # Errors
    /// The first artefact that is unavailable, or that cannot be built.
    pub(super) async fn build(&self, component: &Component, draft: Draft) -> Result<Entry, ComponentError> {
        let binaries = draft.scratch("binaries")?;
        let provenance = self.binaries(component, &draft, &binaries).await?;
        let _held = self.processors.lock().await;
        let mut images = BTreeMap::new();
        for image in &component.images {
            let reference = component.expand(&image.reference, self.architecture);
            let digest = self.image((image, &reference), &draft, &binaries).await?;
            images.insert(reference, digest);
        }
        let packages = self.packages(component, &draft, &binaries).await?;
        Ok(on_worker_thread(move || draft.keep(provenance, images, packages)).await?)
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
                let build = PackageBuild { component, package, architecture: self.architecture, binaries };
                format.build(&build, &work, &content).await?;
            }
            described.extend(format.describe(&content, &platforms).await?);
        }
        Ok(described)
    }

    /// Returns the provenance.
    async fn binaries(
        &self,
        component: &Component,
        draft: &Draft,
        into: &Path,
    ) -> Result<String, ComponentError> {
        let has_release = !component.sources.release.is_empty();
        match self.mode {
            SourceMode::Release if !has_release => Err(ComponentError::NoSuchSource { mode: "release" }),
            SourceMode::Release => self.release(component, into).await,
            SourceMode::Auto if has_release => match self.release(component, into).await {
                Err(ComponentError::Release(ReleaseError::Download(error)))
                    if error.is_absence() && component.sources.go.is_some() =>
                {
                    let reason = error.to_string();
                    (self.events)(BundleEvent::FellBack { part: self.part(component), reason });
                    self.go(component, draft, into).await
                }
                outcome => outcome,
            },
            SourceMode::Go | SourceMode::Auto => self.go(component, draft, into).await,
        }
    }

    async fn release(&self, component: &Component, into: &Path) -> Result<String, ComponentError> {
        let origin = "official artefacts".to_owned();
        (self.events)(BundleEvent::Started { part: self.part(component), origin });
        release_source::fetch(self.downloader, component, self.architecture, into).await?;
        let urls = component
            .sources
            .release
            .iter()
            .map(|artefact| component.expand(&artefact.url, self.architecture));
        Ok(format!("release: {}", urls.collect::<Vec<_>>().join(" ")))
    }

    async fn go(&self, component: &Component, draft: &Draft, into: &Path) -> Result<String, ComponentError> {
        let source = component.sources.go.as_ref().ok_or(ComponentError::NoSuchSource { mode: "go" })?;
        let modules = super::go_module::required(component, source, self.architecture);
        let modules =
            modules.into_iter().map(|(path, version)| format!(" {path}@{version}")).collect::<String>();
        let modules = if modules.is_empty() { " source in the list" } else { &modules };
        let provenance = format!("go:{modules}");
        let _held = self.processors.lock().await;
        (self.events)(BundleEvent::Started { part: self.part(component), origin: provenance.clone() });
        go_source::build(component, source, self.architecture, (&draft.scratch("module")?, into)).await?;
        Ok(provenance)
    }
}

/// The cache key of a component: everything that determines its bytes.
pub(super) fn inputs(component: &Component, builder: (Architecture, SourceMode, &[Platform])) -> Sha256 {
    let text = serde_json::to_vec(&(super::BUILDER, component, builder))
        .expect("plain data with string keys can be serialised");
    Sha256::of(&text)
}
