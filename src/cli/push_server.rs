//! `metalform push-server`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use axum::http::Uri;
use clap::Args;

use super::clock;
use super::failure::{Exit, Failure};
use super::invocation::Invocation;
use crate::bundle::manifest::Bundle;
use crate::bundle::served_bundle::ServedBundle;
use crate::engine::cancel::CancelLevel;
use crate::kube_api::token_access::ReviewServer;
use crate::operation::cluster_site::REGISTRY_WRITER;
use crate::serve::notify;
use crate::serve::push_server::{PushConfig, PushServer};
use crate::serve::secure_listener::ListenConfig;

/// Accept pushes of users' images, from clients whose password is a token of the cluster with the right to put the path
/// /metalform/images (ClusterRole metalform:image-push); the unit metalform-push.service runs it
///
/// Images of bundles are refused. A token of a service account: kubectl create token NAME.
#[derive(Debug, Args)]
pub struct PushServerArgs {
    /// Listen on this address and port
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// Refuse the images of the bundle in DIR; may be given several times
    #[arg(long = "bundle", value_name = "VERSION=DIR", required = true)]
    bundles: Vec<ServedBundle>,
    /// PEM file of the server's certificate; read again when it is replaced
    #[arg(long, value_name = "FILE")]
    certificate: PathBuf,
    /// PEM file of its private key; read again when it is replaced
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// URL of the API server that reviews tokens
    #[arg(long, value_name = "URL")]
    api: Uri,
    /// PEM file of its CA [default: those of the system]
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Socket of the registry
    #[arg(long, value_name = "SOCKET", default_value = REGISTRY_WRITER)]
    registry: PathBuf,
    /// Largest blob of an image, in GiB
    #[arg(long, value_name = "GIB", default_value = "20", value_parser = clap::value_parser!(u64).range(1..=1024))]
    blob_limit: u64,
}

impl PushServerArgs {
    /// Runs until it is interrupted; requests in progress are completed.
    ///
    /// # Errors
    /// When it cannot listen, or its certificate or a bundle cannot be used.
    pub async fn run(&self, invocation: &Invocation) -> Result<ExitCode, Failure> {
        let failed = |error: &dyn std::error::Error| Failure::from_error(Exit::Host, error);
        let mut images = std::collections::BTreeMap::new();
        for ServedBundle { kubernetes, directory } in &self.bundles {
            let bundle = Bundle::read(directory).map_err(|error| failed(&error))?;
            images.extend(bundle.images.into_keys().map(|image| (image, kubernetes.clone())));
        }
        let config = PushConfig {
            listen: ListenConfig {
                listen: self.listen,
                certificate: self.certificate.clone(),
                key: self.key.clone(),
                clock: clock::now,
            },
            registry: self.registry.clone(),
            images,
            blob_limit: self.blob_limit << 30,
            api: ReviewServer { url: self.api.clone(), ca: self.ca.clone() },
        };
        let server = PushServer::bind(config).await.map_err(|error| failed(&error))?;
        notify::ready();
        let cancel = invocation.cancel.clone();
        server.run(async move { cancel.reached(CancelLevel::AfterResource).await }).await;
        Ok(ExitCode::SUCCESS)
    }
}
