//! `metalform serve`.

use std::env;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::clock;
use super::failure::{Exit, Failure};
use super::invocation::Invocation;
use crate::bundle::served_bundle::ServedBundle;
use crate::engine::cancel::CancelLevel;
use crate::operation::cluster_site::REGISTRY;
use crate::serve::http::{Content, HttpConfig, HttpError, HttpServer};
use crate::serve::notify;
use crate::serve::secure_listener::ListenConfig;

/// Serve packages and images to the cluster; the unit metalform.service runs it, as a user that can read no other
/// key than its own
#[derive(Debug, Args)]
pub struct Serve {
    /// Listen on this address and port
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// Serve the packages of the bundle in DIR below /bundles/VERSION; may be given several times
    #[arg(long = "bundle", value_name = "VERSION=DIR", required = true)]
    bundles: Vec<ServedBundle>,
    /// Serve the package indexes in this directory in place of those of the bundles
    #[arg(long, value_name = "DIR")]
    indexes: PathBuf,
    /// PEM file of the server's certificate; read again when it is replaced
    #[arg(long, value_name = "FILE")]
    certificate: PathBuf,
    /// PEM file of its private key; read again when it is replaced
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
}

impl Serve {
    /// Runs until it is interrupted; responses in progress are completed.
    ///
    /// # Errors
    /// When it cannot listen, or its certificate or the bundle cannot be used.
    pub async fn run(&self, invocation: &Invocation) -> Result<ExitCode, Failure> {
        let listen = ListenConfig {
            listen: self.listen,
            certificate: self.certificate.clone(),
            key: self.key.clone(),
            clock: clock::now,
        };
        let program = env::current_exe().map_err(|error| Failure::from_error(Exit::Host, &error))?;
        let content =
            Content::Origin { bundles: self.bundles.clone(), overlay: self.indexes.clone(), program };
        serve(&HttpConfig { listen, content, registry: REGISTRY }, invocation).await
    }
}

/// Serves until it is interrupted; responses in progress are completed.
///
/// # Errors
/// When it cannot listen, or its certificate or the bundle cannot be used.
pub(super) async fn serve(config: &HttpConfig, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let server = HttpServer::bind(config).await.map_err(|error| {
        let failure = Failure::from_error(Exit::Host, &error);
        match error {
            HttpError::Bundle { path, .. } => failure.hint(format!(
                "make it readable by every user: chmod -R a+rX {}, and its parents",
                path.display()
            )),
            _ => failure,
        }
    })?;
    notify::ready();
    let cancel = invocation.cancel.clone();
    server.run(async move { cancel.reached(CancelLevel::AfterResource).await }).await;
    Ok(ExitCode::SUCCESS)
}
