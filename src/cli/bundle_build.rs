//! `metalform bundle build`, `bundle add` and `bundle remove`.

use std::error::Error;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use jiff::Timestamp;

use super::failure::{Exit, Failure};
use super::own_program::own_program;
use super::{Global, clock};
use crate::bundle::build::{BuildError, BuildRequest, build};
use crate::bundle::component::ComponentList;
use crate::bundle::component_build::SourceMode;
use crate::bundle::component_list::{self, SHIPPED};
use crate::bundle::download::DownloadLimits;
use crate::bundle::download::error::DownloadError;
use crate::bundle::event::{BundleEvent, BundleEvents};
use crate::bundle::list_change;
use crate::pki::openpgp::RepositoryKey;
use crate::report::bundle_progress::BundleProgress;

/// Build a bundle: packages, images and their digests
#[derive(Debug, Args)]
pub(super) struct Build {
    /// Component list to use instead of the built-in one
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Directory of the bundle; an existing bundle is replaced atomically
    #[arg(long, short, value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    sources: Sources,
}

/// Add operating systems and components to a bundle, or replace those of the same name; the rest stays
#[derive(Debug, Args)]
pub(super) struct Add {
    /// Directory of the bundle, which is replaced atomically
    directory: PathBuf,
    /// Component list with what to add
    #[arg(long, short, value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    sources: Sources,
}

/// Remove operating systems and components from a bundle
#[derive(Debug, Args)]
pub(super) struct Remove {
    /// Directory of the bundle, which is replaced atomically
    directory: PathBuf,
    /// Names of components, and operating systems such as debian-12
    #[arg(required = true)]
    names: Vec<String>,
    #[command(flatten)]
    sources: Sources,
}

#[derive(Debug, Args)]
struct Sources {
    /// Source of binaries: official releases, or the Go modules of the same versions
    #[arg(long, default_value = "auto")]
    source: Source,
    /// Build of this version of metalform for another architecture, to package beside the one that runs; may be repeated
    #[arg(long = "program", value_name = "FILE")]
    programs: Vec<PathBuf>,
    /// OpenPGP secret key without a passphrase, in ASCII armor, that signs RPM packages
    #[arg(long, value_name = "FILE")]
    package_key: Option<PathBuf>,
    /// Archive of the distribution to use instead of this machine's
    #[arg(long, value_name = "URI", env = "METALFORM_ARCHIVE")]
    archive: Option<String>,
    /// Refuse a component list that lacks the digest of an artefact or of a Go source
    #[arg(long)]
    pinned: bool,
    /// Download the distribution's packages again even if no input changed
    #[arg(long)]
    refresh: bool,
    /// Directory of cached parts
    #[arg(long, value_name = "DIR", env = "METALFORM_CACHE", default_value = "/var/cache/metalform")]
    cache: PathBuf,
    /// Number of downloads side by side
    #[arg(long, value_name = "N", default_value = "4")]
    downloads: NonZeroUsize,
    /// Date of the package indexes, in seconds since 1970, instead of now; builds of one date are equal byte for byte
    #[arg(long, value_name = "SECONDS", env = "SOURCE_DATE_EPOCH", value_parser = date)]
    date: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Source {
    /// Official releases only.
    Release,
    /// Go modules only.
    Go,
    /// Official releases where they are available, otherwise Go modules.
    Auto,
}

pub(super) async fn make(arguments: &Build, global: &Global) -> Result<ExitCode, Failure> {
    let list = components(arguments.file.as_deref())?;
    arguments.sources.build(list, &arguments.output, global).await
}

pub(super) async fn add(arguments: &Add, global: &Global) -> Result<ExitCode, Failure> {
    let list = list_change::with(&own(&arguments.directory)?, &components(Some(&arguments.file))?);
    arguments.sources.build(list, &arguments.directory, global).await
}

pub(super) async fn remove(arguments: &Remove, global: &Global) -> Result<ExitCode, Failure> {
    let list = list_change::without(&own(&arguments.directory)?, &arguments.names)
        .map_err(|error| Failure::from_error(Exit::Configuration, &error))?;
    arguments.sources.build(list, &arguments.directory, global).await
}

impl Sources {
    async fn build(&self, list: ComponentList, output: &Path, global: &Global) -> Result<ExitCode, Failure> {
        let request = BuildRequest {
            list,
            output: output.to_owned(),
            cache: self.cache.join("bundle"),
            source: match self.source {
                Source::Release => SourceMode::Release,
                Source::Go => SourceMode::Go,
                Source::Auto => SourceMode::Auto,
            },
            program: own_program(&self.programs)?,
            package_key: self.package_key.as_deref().map(package_key).transpose()?,
            archive: self.archive.clone(),
            pinned: self.pinned,
            refresh: self.refresh,
            downloads: DownloadLimits::new(self.downloads),
            now: self.date.unwrap_or_else(clock::now),
        };
        let built = reported(global, async |report| build(&request, report).await).await;
        built.map_err(|error| build_failure(&error))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Work whose progress is shown. The line of the downloads is gone when it returns, before an error is printed.
pub(super) async fn reported<T>(global: &Global, work: impl AsyncFnOnce(BundleEvents<'_>) -> T) -> T {
    let progress = (!global.quiet).then(BundleProgress::new);
    let report = |event: BundleEvent| {
        if let Some(progress) = &progress {
            progress.event(&event);
        }
    };
    work(&report).await
}

fn build_failure(error: &BuildError) -> Failure {
    if matches!(error, BuildError::NotPinned { .. }) {
        let hint =
            "build without --pinned once, then use the list of that bundle: --file BUNDLE/components.yaml";
        return Failure::from_error(Exit::Configuration, error).hint(hint);
    }
    match error.download().filter(|download| download.is_of_source()) {
        Some(download) => download_failure(error, download),
        None => Failure::from_error(Exit::Configuration, error),
    }
}

/// The failure of a source.
pub(super) fn download_failure(error: &dyn Error, download: &DownloadError) -> Failure {
    let failure = Failure::from_error(Exit::Host, error);
    match download {
        DownloadError::Interrupted { .. } => {
            failure.hint("run the same command again; it resumes the download")
        }
        DownloadError::CertificateExpired { .. } => failure.hint("check the date of this machine: date"),
        _ => failure,
    }
}

fn package_key(path: &Path) -> Result<RepositoryKey, Failure> {
    let failed = |reason: String| Failure::new(Exit::Configuration, format!("{}: {reason}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    RepositoryKey::from_armor(&text).map_err(|error| failed(error.to_string()))
}

/// As in reproducible-builds.org/specs/source-date-epoch.
fn date(text: &str) -> Result<Timestamp, String> {
    let seconds = text.parse().map_err(|_| "expected a number of seconds".to_owned())?;
    Timestamp::from_second(seconds).map_err(|error| error.to_string())
}

/// The component list that a bundle was built from.
fn own(directory: &Path) -> Result<ComponentList, Failure> {
    components(Some(&directory.join(component_list::FILE_NAME))).map_err(|failure| {
        failure.hint(format!("build it again: metalform bundle build -o {}", directory.display()))
    })
}

/// The component list in a file; `None` is the built-in one.
pub(super) fn components(file: Option<&Path>) -> Result<ComponentList, Failure> {
    let (name, text) = match file {
        None => ("components.yaml".to_owned(), SHIPPED.to_owned()),
        Some(path) => {
            let name = path.display().to_string();
            let text = std::fs::read_to_string(path)
                .map_err(|error| Failure::new(Exit::Configuration, format!("{name}: {error}")))?;
            (name, text)
        }
    };
    component_list::parse(&name, &text).map_err(|error| Failure::from_error(Exit::Configuration, &error))
}
