//! `metalform bundle pack` and `bundle unpack`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::damaged_bundle::damaged_bundle;
use super::failure::{Exit, Failure};
use super::output::print;
use crate::bundle::manifest::BundleManifestError;
use crate::bundle::pack::{PackError, pack};
use crate::bundle::signature::SignatureFileError;
use crate::bundle::unpack::{UnpackError, unpack};
use crate::model::bundle_key::BundleKey;

/// Make one file of a bundle, to be carried and unpacked elsewhere
#[derive(Debug, Args)]
pub(super) struct Pack {
    /// Directory of the bundle; it is verified first
    directory: PathBuf,
    /// File to write; an existing one is replaced once the new one is complete
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

/// Make a bundle of a file of `bundle pack`, verified while it is read
#[derive(Debug, Args)]
pub(super) struct Unpack {
    /// The file
    archive: PathBuf,
    /// Directory of the bundle; an existing bundle is replaced atomically
    #[arg(long, short, value_name = "DIR")]
    output: PathBuf,
    /// Require a signature by this public key: the key itself
    #[arg(long, value_name = "RW...")]
    key: Option<BundleKey>,
}

pub(super) fn pack_bundle(arguments: &Pack) -> Result<ExitCode, Failure> {
    pack(&arguments.directory, &arguments.output).map_err(|error| match error {
        PackError::Damaged(problems) => damaged_bundle(&arguments.directory, &problems),
        error => Failure::from_error(Exit::Configuration, &error),
    })?;
    print(&format!("{}: written\n", arguments.output.display()))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn unpack_bundle(arguments: &Unpack) -> Result<ExitCode, Failure> {
    let bundle = unpack(&arguments.archive, &arguments.output, arguments.key.as_ref())
        .map_err(|error| Failure::from_error(exit(&error), &error))?;
    print(&format!("{}: complete, {} files\n", arguments.output.display(), bundle.files.len()))?;
    Ok(ExitCode::SUCCESS)
}

/// A damaged archive is told from a wrong use.
fn exit(error: &UnpackError) -> Exit {
    match error {
        UnpackError::Archive { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            Exit::Configuration
        }
        UnpackError::Manifest(BundleManifestError::Signature(SignatureFileError::Signature { .. }))
        | UnpackError::Archive { .. }
        | UnpackError::Unlisted { .. }
        | UnpackError::Altered { .. }
        | UnpackError::Missing { .. } => Exit::Host,
        UnpackError::NoManifest { .. }
        | UnpackError::Manifest(_)
        | UnpackError::Write { .. }
        | UnpackError::Staging(_) => Exit::Configuration,
    }
}
