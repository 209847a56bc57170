//! `metalform bundle`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::bundle_build::{Add, Build, Remove, add, components, make, remove};
use super::bundle_diff::{Diff, diff};
use super::bundle_import::{Import, import_bundle};
use super::bundle_pack::{Pack, Unpack, pack_bundle, unpack_bundle};
use super::damaged_bundle::damaged_bundle;
use super::failure::{Exit, Failure};
use super::output::{Format, document, print};
use super::{Global, clock};
use crate::bundle::manifest::{self, Bundle, BundleManifestError};
use crate::bundle::signature;
use crate::bundle::verify::verify;
use crate::model::bundle_key::BundleKey;
use crate::pki::bundle_signature::{BundleSignatureError, BundleSigningKey};
use crate::pki::openpgp::{OpenPgpError, RepositoryKey};
use crate::report::table::table;
use crate::service::states::bundle_needs;
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
    Build(Build),
    Add(Add),
    Remove(Remove),
    /// Verify that a bundle is complete and unaltered: every file, image and package that any role asks for
    Verify(Verify),
    /// Generate the key pair that bundles, or RPM packages, are signed with: KEY, of mode 0600, and KEY.pub
    Keygen(Keygen),
    /// Sign a bundle: its bundle.yaml, which has the digest of every other file
    Sign(Sign),
    /// List the images and packages of a bundle
    List(List),
    Diff(Diff),
    Pack(Pack),
    Unpack(Unpack),
    Import(Import),
}

#[derive(Debug, Args)]
struct Verify {
    /// Directory of the bundle
    directory: PathBuf,
    /// Component list to verify against instead of the bundle's own
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
    /// Make an OpenPGP key that signs RPM packages, for `bundle build --package-key`
    #[arg(long)]
    packages: bool,
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
            Verb::Add(arguments) => add(arguments, global).await,
            Verb::Remove(arguments) => remove(arguments, global).await,
            Verb::Verify(arguments) => check(arguments, global),
            Verb::Keygen(arguments) => keygen(arguments),
            Verb::Sign(arguments) => sign(arguments),
            Verb::List(arguments) => list(arguments),
            Verb::Diff(arguments) => diff(arguments),
            Verb::Pack(arguments) => pack_bundle(arguments),
            Verb::Unpack(arguments) => unpack_bundle(arguments),
            Verb::Import(arguments) => import_bundle(arguments, global).await,
        }
    }
}

fn check(arguments: &Verify, global: &Global) -> Result<ExitCode, Failure> {
    let list = arguments.file.as_deref().map(|file| components(Some(file))).transpose()?;
    let needs = bundle_needs(global.tree.as_deref())?;
    let failed = |error: BundleManifestError| Failure::from_error(Exit::Configuration, &error);
    let problems =
        verify(&arguments.directory, list.as_ref(), &needs, arguments.key.as_ref()).map_err(failed)?;
    if problems.is_empty() {
        print(&format!("{}: complete\n", arguments.directory.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    Err(damaged_bundle(&arguments.directory, &problems))
}

fn keygen(arguments: &Keygen) -> Result<ExitCode, Failure> {
    if arguments.packages {
        return package_keygen(&arguments.key);
    }
    let failed = |error: BundleSignatureError| Failure::from_error(Exit::Configuration, &error);
    let key = BundleSigningKey::generate().map_err(failed)?;
    let (secret, public) = (key.to_text().map_err(failed)?, key.public_text().map_err(failed)?);
    let pinned: BundleKey = public.parse().map_err(|error| Failure::from_error(Exit::Bug, &error))?;
    create_pair(&arguments.key, (&secret, &public))?;
    print(&format!("bundleKey: {pinned}\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn package_keygen(path: &Path) -> Result<ExitCode, Failure> {
    let failed = |error: OpenPgpError| Failure::from_error(Exit::Configuration, &error);
    let key =
        RepositoryKey::create("packages (metalform)", clock::now(), &mut rand::rng()).map_err(failed)?;
    create_pair(path, (&key.to_armor().map_err(failed)?, &key.public_armor().map_err(failed)?))?;
    print(&format!("{}\n", key.fingerprint()))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a secret key, and the public one beside it; neither exists before.
fn create_pair(path: &Path, (secret, public): (&str, &str)) -> Result<(), Failure> {
    let public_file = path.with_added_extension("pub");
    for (path, content, mode) in [(path, secret, PRIVATE), (public_file.as_path(), public, PUBLIC)] {
        atomic_file::create(path, content.as_bytes(), mode)
            .map_err(|error| Failure::from_error(Exit::Configuration, &error))?;
    }
    Ok(())
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
