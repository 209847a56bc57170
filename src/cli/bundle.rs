//! `metalform bundle`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};

use super::failure::{Exit, Failure};
use super::output::{Format, document, print};
use super::{Global, clock};
use crate::bundle::build::{BuildRequest, build};
use crate::bundle::component::ComponentList;
use crate::bundle::component_build::SourceMode;
use crate::bundle::component_list::{self, SHIPPED};
use crate::bundle::manifest::Bundle;
use crate::bundle::verify::verify;
use crate::report::table::table;

/// Make and check what an offline cluster is made of
#[derive(Debug, Args)]
pub struct BundleCommand {
    #[command(subcommand)]
    command: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Fill a directory with packages, images and their digests
    Build(Build),
    /// Prove that a bundle is whole: every file, image and package that any role needs
    Verify(Verify),
    /// Show what a bundle holds
    List(List),
}

#[derive(Debug, Args)]
struct Build {
    /// Components, instead of those that this version of metalform ships
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Directory to fill; an older bundle there is replaced in one step
    #[arg(long, short, value_name = "DIR")]
    output: PathBuf,
    /// Official releases, or the Go modules of the same versions
    #[arg(long, default_value = "auto")]
    source: Source,
    /// Archive of the distribution, instead of the one that this machine uses
    #[arg(long, value_name = "URI", env = "METALFORM_ARCHIVE")]
    archive: Option<String>,
    /// Ask the distribution's archive again though nothing changed here
    #[arg(long)]
    refresh: bool,
    /// Where parts are kept between builds
    #[arg(long, value_name = "DIR", env = "METALFORM_CACHE", default_value = "/var/cache/metalform")]
    cache: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Source {
    /// From official releases only.
    Release,
    /// From Go modules only.
    Go,
    /// From releases where they can be reached, else from Go modules.
    Auto,
}

#[derive(Debug, Args)]
struct Verify {
    /// The bundle's directory
    directory: PathBuf,
    /// Components that must be there, instead of those that this version of metalform ships
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct List {
    /// The bundle's directory
    directory: PathBuf,
    /// Output format
    #[arg(long, short, default_value = "table")]
    output: Format,
}

impl BundleCommand {
    /// Runs it.
    ///
    /// # Errors
    /// When the bundle cannot be made, or is not whole.
    pub async fn run(&self, global: &Global) -> Result<ExitCode, Failure> {
        match &self.command {
            Verb::Build(arguments) => make(arguments, global).await,
            Verb::Verify(arguments) => check(arguments),
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
        now: clock::now(),
    };
    let quiet = global.quiet;
    let tell = move |event: crate::bundle::event::BundleEvent| {
        if !quiet {
            crate::report::to_stderr(&event.to_string());
        }
    };
    build(&request, &tell).await.map_err(|error| Failure::from_error(Exit::Configuration, &error))?;
    Ok(ExitCode::SUCCESS)
}

fn check(arguments: &Verify) -> Result<ExitCode, Failure> {
    let list = components(arguments.file.as_deref())?;
    let problems = verify(&arguments.directory, &list)
        .map_err(|error| Failure::from_error(Exit::Configuration, &error))?;
    if problems.is_empty() {
        print(&format!("{}: whole\n", arguments.directory.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    Err(Failure {
        exit: Exit::Configuration,
        errors: problems.iter().map(ToString::to_string).collect(),
        hints: vec![format!("metalform bundle build -o {} makes it anew", arguments.directory.display())],
    })
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
                    package.systems.join(","),
                ]
            });
            let rows: Vec<[String; 4]> = images.chain(packages).collect();
            print(&table(&["KIND", "NAME", "VERSION", "SYSTEMS OR DIGEST"], &rows))?;
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
