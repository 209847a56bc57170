//! `metalform serve`.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use super::failure::{Exit, Failure};
use super::{Global, workspace};
use crate::controller::certificate_requests::{self, Sign};
use crate::controller::csr_verdict::Profile;
use crate::kube_api::client;
use crate::model::cluster::SERVE_PORT;
use crate::operation::cluster_site::{REGISTRY, Setting};
use crate::pki::certificate_request::parse_csr;
use crate::pki::leaf::{Leaf, Usage};
use crate::pki::serial::Serial;
use crate::serve::http::{HttpConfig, HttpServer};
use crate::serve::notify;
use crate::workspace::trust;

/// Serve packages, images and kubelet certificates to the cluster; the unit metalform.service runs it
#[derive(Debug, Args)]
pub struct Serve {}

/// Days that a kubelet's certificate is good for; it asks for the next one by itself.
const DAYS: u32 = 365;

impl Serve {
    /// Runs until it is told to stop.
    ///
    /// # Errors
    /// When it cannot listen, or its certificate is missing.
    pub async fn run(&self, global: &Global) -> Result<ExitCode, Failure> {
        let setting = workspace::open(global).await?;
        let (certificate, key) = setting.layout.serve();
        let config = HttpConfig {
            listen: SocketAddr::new(setting.subject.address, SERVE_PORT),
            certificate,
            key,
            bundle: setting.bundle_directory.clone(),
            apt_overlay: setting.layout.signed_indexes(),
            registry: REGISTRY,
        };
        let failed = |error: &dyn std::error::Error| Failure::from_error(Exit::Host, error);
        let server = HttpServer::bind(&config).await.map_err(|error| failed(&error))?;
        tokio::spawn(sign_requests(setting));
        notify::ready();
        server.run(terminated()).await.map_err(|error| failed(&error))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The API comes later than this service on the first day, and may be away on any other: it is tried again.
async fn sign_requests(setting: Arc<Setting>) {
    let mut beat = tokio::time::interval(std::time::Duration::from_millis(500));
    let client = loop {
        beat.tick().await;
        match client::connect(&setting.layout.admin_conf()).await {
            // A watch that fails is tried again ever later; a question that fails is just asked again.
            Ok(client) if client.apiserver_version().await.is_ok() => break client,
            Ok(_) => tracing::debug!("the API does not answer yet"),
            Err(error) => tracing::debug!(%error, "the API cannot be asked yet"),
        }
    };
    certificate_requests::run(
        client,
        Arc::new(move |csr: &str, profile| sign(&setting, csr, profile)) as Arc<Sign>,
    )
    .await;
}

/// What the request says was judged before; the certificate says just that.
fn sign(setting: &Setting, csr: &str, profile: Profile) -> Result<String, String> {
    let asked = parse_csr(csr).map_err(|error| error.to_string())?;
    let now = (setting.now)();
    let trust = trust::load(&setting.layout, now, &mut rand::rng()).map_err(|error| error.to_string())?;
    let addresses = asked.ip_addresses.iter().map(ToString::to_string);
    let leaf = Leaf {
        common_name: asked.common_name,
        organization: asked.organizations.first().cloned(),
        names: asked.dns_names.iter().cloned().chain(addresses).collect(),
        usages: vec![match profile {
            Profile::KubeletClient => Usage::Client,
            Profile::KubeletServing => Usage::Server,
        }],
        days: DAYS,
    };
    let serial = Serial::random(&mut rand::rng());
    trust.authorities.kubernetes.issue(&leaf, csr, now, serial).map_err(|error| error.to_string())
}

async fn terminated() {
    match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        Ok(mut signal) => {
            signal.recv().await;
        }
        Err(error) => {
            tracing::warn!(%error, "SIGTERM cannot be waited for");
            std::future::pending::<()>().await;
        }
    }
}
