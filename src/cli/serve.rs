//! `metalform serve`.

use std::net::SocketAddr;
use std::process::ExitCode;

use clap::Args;

use super::failure::{Exit, Failure};
use super::invocation::Invocation;
use super::ssh_arguments::SshArguments;
use super::workspace;
use crate::controller::kubelet_signer;
use crate::engine::cancel::CancelLevel;
use crate::model::cluster::SERVE_PORT;
use crate::operation::cluster_site::REGISTRY;
use crate::serve::http::{HttpConfig, HttpServer};
use crate::serve::notify;

/// Serve packages, images and kubelet certificates to the cluster; the unit metalform.service runs it
#[derive(Debug, Args)]
pub struct Serve {}

impl Serve {
    /// Runs until it is interrupted; responses in progress are completed.
    ///
    /// # Errors
    /// When it cannot listen, or its certificate cannot be used.
    pub async fn run(&self, invocation: &Invocation) -> Result<ExitCode, Failure> {
        let setting = workspace::open(invocation, &SshArguments::default()).await?;
        let (certificate, key) = setting.layout.serve();
        let config = HttpConfig {
            listen: SocketAddr::new(setting.subject.address, SERVE_PORT),
            certificate,
            key,
            bundle: setting.bundle_directory.clone(),
            overlay: setting.layout.signed_indexes(),
            registry: REGISTRY,
        };
        let failed = |error: &dyn std::error::Error| Failure::from_error(Exit::Host, error);
        let server = HttpServer::bind(&config).await.map_err(|error| failed(&error))?;
        let signer = tokio::spawn(kubelet_signer::run(
            setting.layout.clone(),
            setting.configuration.networks.clone(),
            setting.now,
        ));
        notify::ready();
        let cancel = invocation.cancel.clone();
        let served = server.run(async move { cancel.reached(CancelLevel::AfterResource).await }).await;
        signer.abort();
        served.map_err(|error| failed(&error))?;
        Ok(ExitCode::SUCCESS)
    }
}
