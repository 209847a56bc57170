//! One component: its binaries from one source or the other, then its images and packages.

use std::collections::BTreeMap;
use std::path::Path;

use super::apt_repository::{self, IndexError};
use super::component::{Architecture, Component};
use super::deb::{self, DebError};
use super::digest::Sha256;
use super::download::Downloader;
use super::entry::{Draft, Entry, EntryError, EntryPackage};
use super::event::{BundleEvent, Events};
use super::go_source::{self, GoError};
use super::image::{self, ImageError};
use super::release_source::{self, ReleaseError};

/// Which source a build takes binaries from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceMode {
    /// Official artefacts only.
    Release,
    /// Go modules only.
    Go,
    /// Official artefacts where they can be had; Go modules elsewhere.
    #[default]
    Auto,
}

/// Why a component was not built.
#[derive(Debug, thiserror::Error)]
pub enum ComponentError {
    /// As it says.
    #[error(transparent)]
    Release(#[from] ReleaseError),
    /// As it says.
    #[error(transparent)]
    Go(#[from] GoError),
    /// As it says.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// As it says.
    #[error(transparent)]
    Deb(#[from] DebError),
    /// As it says.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// As it says.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// The mode asks for a source that the list does not give.
    #[error("the component list gives no {mode} source")]
    NoSuchSource {
        /// `release` or `go`.
        mode: &'static str,
    },
}

/// What is the same for all components of a build.
pub(super) struct ComponentBuilder<'a> {
    pub(super) downloader: &'a Downloader,
    pub(super) architecture: Architecture,
    pub(super) mode: SourceMode,
    /// Codenames of the systems that get the packages.
    pub(super) systems: &'a [String],
    pub(super) events: Events<'a>,
}

impl ComponentBuilder<'_> {
    /// # Errors
    /// The first thing that cannot be had or made.
    pub(super) async fn build(&self, component: &Component, draft: Draft) -> Result<Entry, ComponentError> {
        let binaries = draft.scratch("binaries")?;
        let provenance = self.binaries(component, &draft, &binaries).await?;
        let mut images = BTreeMap::new();
        for image in &component.images {
            let reference = component.expand(&image.reference, self.architecture);
            let blobs = draft.content("images/blobs/sha256")?;
            let digest = image::make((image, &reference), self.architecture, &binaries, &blobs)?;
            images.insert(reference, digest);
        }
        let packages = self.packages(component, &draft, &binaries).await?;
        Ok(draft.keep(provenance, images, packages)?)
    }

    async fn packages(
        &self,
        component: &Component,
        draft: &Draft,
        binaries: &Path,
    ) -> Result<Vec<EntryPackage>, ComponentError> {
        for package in &component.packages {
            let file = format!("{}_{}_{}.deb", package.name, component.version, self.architecture.as_str());
            let work = draft.scratch(&format!("deb/{}", package.name))?;
            let made = draft.content("apt/pool/all")?.join(file);
            deb::make((package, &component.version, self.architecture), binaries, &work, &made).await?;
        }
        if component.packages.is_empty() {
            return Ok(Vec::new());
        }
        Ok(apt_repository::scan(&draft.content("apt")?, self.systems).await?)
    }

    /// Returns where they came from.
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
                    (self.events)(BundleEvent::FellBack { part: component.name.clone(), reason });
                    self.go(component, draft, into).await
                }
                outcome => outcome,
            },
            SourceMode::Go | SourceMode::Auto => self.go(component, draft, into).await,
        }
    }

    async fn release(&self, component: &Component, into: &Path) -> Result<String, ComponentError> {
        let origin = "official artefacts".to_owned();
        (self.events)(BundleEvent::Started { part: component.name.clone(), origin });
        release_source::fetch(self.downloader, component, self.architecture, into).await?;
        let urls = component
            .sources
            .release
            .iter()
            .map(|download| component.expand(&download.url, self.architecture));
        Ok(format!("release: {}", urls.collect::<Vec<_>>().join(" ")))
    }

    async fn go(&self, component: &Component, draft: &Draft, into: &Path) -> Result<String, ComponentError> {
        let source = component.sources.go.as_ref().ok_or(ComponentError::NoSuchSource { mode: "go" })?;
        let modules = super::go_module::required(component, source, self.architecture);
        let modules =
            modules.into_iter().map(|(path, version)| format!(" {path}@{version}")).collect::<String>();
        let modules = if modules.is_empty() { " source in the list" } else { &modules };
        let provenance = format!("go:{modules}");
        (self.events)(BundleEvent::Started { part: component.name.clone(), origin: provenance.clone() });
        go_source::build(component, source, self.architecture, (&draft.scratch("module")?, into)).await?;
        Ok(provenance)
    }
}

/// The key of a component's entry: all that decides its bytes.
pub(super) fn inputs(component: &Component, builder: (Architecture, SourceMode, &[String])) -> Sha256 {
    let text = serde_json::to_vec(&(super::BUILDER, component, builder))
        .expect("serialises, because a component is plain data with text keys");
    Sha256::of(&text)
}
