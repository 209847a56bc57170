//! `metalform bundle`.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use jiff::Timestamp;

use super::failure::{Exit, Failure};
use super::output::{Format, document, print};
use super::{Global, clock};
use crate::bundle::build::{BuildError, BuildRequest, build};
use crate::bundle::component::ComponentList;
use crate::bundle::component_build::SourceMode;
use crate::bundle::component_list::{self, SHIPPED};
use crate::bundle::download::DownloadLimits;
use crate::bundle::download::error::DownloadError;
use crate::bundle::event::BundleEvent;
use crate::bundle::manifest::{self, Bundle};
use crate::bundle::signature;
use crate::bundle::verify::verify;
use crate::model::bundle_key::BundleKey;
use crate::pki::bundle_signature::{BundleSignatureError, BundleSigningKey};
use crate::report::bundle_progress::BundleProgress;
use crate::report::table::table;
use crate::workspace::atomic_file;
use crate::workspace::trust_file::{PRIVATE, PUBLIC};

/// Build and verify bundles: the packages and images of an offline cluster
#[derive(Debug, Args)]
pub struct BundleCommand {
    #[command(subcommand)]
    command: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Build a bundle: packages, images and their digests
    Build(Build),
    /// Verify that a bundle is complete and unaltered: every file, image and package of any role
    Verify(Verify),
    /// Generate the key pair that bundles are signed with: KEY, of mode 0600, and KEY.pub
    Keygen(Keygen),
    /// Sign a bundle: its bundle.yaml, which has the digest of every other file
    Sign(Sign),
    /// List the images and packages of a bundle
    List(List),
}

#[derive(Debug, Args)]
struct Build {
    /// Component list to use instead of the built-in one
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Directory of the bundle; an existing bundle is replaced atomically
    #[arg(long, short, value_name = "DIR")]
    output: PathBuf,
    /// Source of binaries: official releases, or the Go modules of the same versions
    #[arg(long, default_value = "auto")]
    source: Source,
    /// Archive of the distribution to use instead of this machine's
    #[arg(long, value_name = "URI", env = "METALFORM_ARCHIVE")]
    archive: Option<String>,
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

#[derive(Debug, Args)]
struct Verify {
    /// Directory of the bundle
    directory: PathBuf,
    /// Component list to verify against instead of the built-in one
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Require a signature by this public key: the key itself
    #[arg(long, value_name = "RW...")]
    key: Option<BundleKey>,
}

#[derive(Debug, Args)]
struct Keygen {
    /// File of the secret key; it must not exist
    key: PathBuf,
}

#[derive(Debug, Args)]
struct Sign {
    /// Directory of the bundle
    directory: PathBuf,
    /// Secret key of `metalform bundle keygen`, or of minisign without a password
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
}

#[derive(Debug, Args)]
struct List {
    /// Directory of the bundle
    directory: PathBuf,
    /// Output format
    #[arg(long, short, default_value = "table")]
    output: Format,
}

impl BundleCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// When the bundle cannot be built, or is not complete.
    pub async fn run(&self, global: &Global) -> Result<ExitCode, Failure> {
        match &self.command {
            Verb::Build(arguments) => make(arguments, global).await,
            Verb::Verify(arguments) => check(arguments),
            Verb::Keygen(arguments) => keygen(arguments),
            Verb::Sign(arguments) => sign(arguments),
            Verb::List(arguments) => list(arguments),
        }
    }
}

async fn make(arguments: &Build, global: &Global) -> Result<ExitCode, Failure> {
    let request = BuildRequest {
        list: components(arguments.file.as_deref())?,
        output: arguments.output.clone(),
        cache: arguments.cache.join("bundle"),
        source: match arguments.source {
            Source::Release => SourceMode::Release,
            Source::Go => SourceMode::Go,
            Source::Auto => SourceMode::Auto,
        },
        archive: arguments.archive.clone(),
        refresh: arguments.refresh,
        downloads: DownloadLimits::new(arguments.downloads),
        now: arguments.date.unwrap_or_else(clock::now),
    };
    let progress = (!global.quiet).then(BundleProgress::new);
    let report = |event: BundleEvent| {
        if let Some(progress) = &progress {
            progress.event(&event);
        }
    };
    let built = build(&request, &report).await;
    // The line of the downloads is gone before an error is printed.
    drop(progress);
    built.map_err(|error| build_failure(&error))?;
    Ok(ExitCode::SUCCESS)
}

fn build_failure(error: &BuildError) -> Failure {
    let Some(download) = error.download().filter(|download| download.is_of_source()) else {
        return Failure::from_error(Exit::Configuration, error);
    };
    let failure = Failure::from_error(Exit::Host, error);
    match download {
        DownloadError::Interrupted { .. } => {
            failure.hint("run the same command again; it resumes the download")
        }
        DownloadError::CertificateExpired { .. } => failure.hint("check the date of this machine: date"),
        _ => failure,
    }
}

/// As in reproducible-builds.org/specs/source-date-epoch.
fn date(text: &str) -> Result<Timestamp, String> {
    let seconds = text.parse().map_err(|_| "expected a number of seconds".to_owned())?;
    Timestamp::from_second(seconds).map_err(|error| error.to_string())
}

fn check(arguments: &Verify) -> Result<ExitCode, Failure> {
    let list = components(arguments.file.as_deref())?;
    let problems = verify(&arguments.directory, &list, arguments.key.as_ref())
        .map_err(|error| Failure::from_error(Exit::Configuration, &error))?;
    if problems.is_empty() {
        print(&format!("{}: complete\n", arguments.directory.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    Err(Failure {
        exit: Exit::Host,
        errors: problems.iter().map(ToString::to_string).collect(),
        hints: vec![format!("build it again: metalform bundle build -o {}", arguments.directory.display())],
    })
}

fn keygen(arguments: &Keygen) -> Result<ExitCode, Failure> {
    let failed = |error: BundleSignatureError| Failure::from_error(Exit::Configuration, &error);
    let key = BundleSigningKey::generate().map_err(failed)?;
    let (secret, public) = (key.to_text().map_err(failed)?, key.public_text().map_err(failed)?);
    let pinned: BundleKey = public.parse().map_err(|error| Failure::from_error(Exit::Bug, &error))?;
    let public_file = arguments.key.with_added_extension("pub");
    for (path, content, mode) in [(&arguments.key, secret, PRIVATE), (&public_file, public, PUBLIC)] {
        atomic_file::create(path, content.as_bytes(), mode)
            .map_err(|error| Failure::from_error(Exit::Configuration, &error))?;
    }
    print(&format!("bundleKey: {pinned}\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn sign(arguments: &Sign) -> Result<ExitCode, Failure> {
    let path = arguments.key.display();
    let text = std::fs::read_to_string(&arguments.key)
        .map_err(|error| Failure::new(Exit::Configuration, format!("{path}: {error}")))?;
    let key = BundleSigningKey::parse(&text)
        .map_err(|error| Failure::new(Exit::Configuration, format!("{path}: {error}")))?;
    let bundle = Bundle::read(&arguments.directory)
        .map_err(|error| Failure::from_error(Exit::Configuration, &error))?;
    let comment = format!("Kubernetes {}", bundle.kubernetes_version().unwrap_or("none"));
    signature::sign(&arguments.directory.join(manifest::FILE_NAME), &key, &comment)
        .map_err(|error| Failure::from_error(Exit::Configuration, &error))?;
    print(&format!("{}: signed\n", arguments.directory.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn list(arguments: &List) -> Result<ExitCode, Failure> {
    let bundle = Bundle::read(&arguments.directory)
        .map_err(|error| Failure::from_error(Exit::Configuration, &error))?;
    match arguments.output {
        Format::Json | Format::Yaml => document(arguments.output, &bundle)?,
        Format::Name => print(&bundle.images.keys().map(|name| format!("{name}\n")).collect::<String>())?,
        Format::Table | Format::Wide => {
            let images = bundle
                .images
                .iter()
                .map(|(name, digest)| ["image".to_owned(), name.clone(), String::new(), digest.to_string()]);
            let packages = bundle.packages.iter().map(|package| {
                [
                    "package".to_owned(),
                    package.name.clone(),
                    package.version.clone(),
                    package.platforms.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
                ]
            });
            let rows: Vec<[String; 4]> = images.chain(packages).collect();
            print(&table(&["KIND", "NAME", "VERSION", "PLATFORMS OR DIGEST"], &rows))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn components(file: Option<&Path>) -> Result<ComponentList, Failure> {
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
