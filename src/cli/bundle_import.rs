//! `metalform bundle import`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::Global;
use super::bundle_build::{download_failure, reported};
use super::failure::{Exit, Failure};
use crate::bundle::download::DownloadLimits;
use crate::bundle::import::{ImportError, ImportRequest, import};
use crate::bundle::manifest::BundleManifestError;
use crate::bundle::signature::SignatureFileError;
use crate::model::bundle_key::BundleKey;

/// Copy a bundle from a node that serves it, verified; what is there already is not downloaded
#[derive(Debug, Args)]
pub(super) struct Import {
    /// Where it is served: https://10.20.0.11:8443/bundles/1.35.4
    url: String,
    /// Directory of the bundle; an existing bundle is replaced atomically
    #[arg(long, short, value_name = "DIR")]
    output: PathBuf,
    /// Verify the server with this CA instead of the system's: /etc/metalform/ca.crt of a node
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Require a signature by this public key: the key itself
    #[arg(long, value_name = "RW...")]
    key: Option<BundleKey>,
    /// Number of downloads side by side
    #[arg(long, value_name = "N", default_value = "4")]
    downloads: NonZeroUsize,
}

pub(super) async fn import_bundle(arguments: &Import, global: &Global) -> Result<ExitCode, Failure> {
    let read = |path: &PathBuf| {
        std::fs::read(path)
            .map_err(|error| Failure::new(Exit::Configuration, format!("{}: {error}", path.display())))
    };
    let request = ImportRequest {
        url: arguments.url.clone(),
        output: arguments.output.clone(),
        key: arguments.key.clone(),
        authorities: arguments.ca.as_ref().map(read).transpose()?,
        downloads: DownloadLimits::new(arguments.downloads),
    };
    let imported = reported(global, async |report| import(&request, report).await).await;
    imported.map_err(|error| failure(&error))?;
    Ok(ExitCode::SUCCESS)
}

fn failure(error: &ImportError) -> Failure {
    match error {
        ImportError::Download(download) if download.is_of_source() => download_failure(error, download),
        ImportError::Manifest(BundleManifestError::Signature(SignatureFileError::Signature { .. })) => {
            Failure::from_error(Exit::Host, error)
        }
        ImportError::Unverified { .. } => {
            Failure::from_error(Exit::Configuration, error).hint("--key KEY, as in bootstrap.yaml")
        }
        _ => Failure::from_error(Exit::Configuration, error),
    }
}
