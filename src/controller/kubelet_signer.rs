//! The signer of kubelets' certificates, as `metalform serve` runs it.
//!
//! # Guarantees
//! - The CA is read for each certificate; one that is lost is an error, and is never created here.
//! - The controller starts again with a new client when the administrator's kubeconfig is replaced.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use rand::rngs::ThreadRng;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::certificate_requests::{self, Sign};
use crate::kube_api::client;
use crate::pki::authorities::Ca;
use crate::pki::authority::AuthorityError;
use crate::pki::certificate_request::ParsedCsr;
use crate::pki::leaf::Leaf;
use crate::pki::serial::Serial;
use crate::workspace::file_version::FileVersion;
use crate::workspace::layout::Layout;
use crate::workspace::trust::{self, TrustError};

/// Between attempts to reach the API, which starts after this service on the first day.
const CONNECT: Duration = Duration::from_millis(500);
/// Between checks of the kubeconfig.
const CREDENTIALS: Duration = Duration::from_secs(10);

/// Why a certificate was not signed.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// The CA.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The CA cannot issue this certificate.
    #[error("cannot sign: {0}")]
    Authority(#[from] AuthorityError),
}

/// Signs until it is dropped. Failures are logged and tried again.
pub async fn run(layout: Layout, clock: fn() -> Timestamp) {
    let kubeconfig = layout.admin_conf();
    let sign: Arc<Sign> = Arc::new(move |leaf: &Leaf, csr: &ParsedCsr| {
        Ok(sign(&layout, leaf, csr, (clock(), &mut rand::rng()))?)
    });
    loop {
        let version = FileVersion::of(&[kubeconfig.as_path()]);
        let client = connect(&kubeconfig).await;
        tokio::select! {
            () = certificate_requests::run(client, Arc::clone(&sign)) => {}
            () = replaced(&kubeconfig, version) => tracing::info!("the kubeconfig was replaced: connecting again"),
        }
    }
}

/// Signs for the request that was judged, with the CA as it is on the disk now.
fn sign(
    layout: &Layout,
    leaf: &Leaf,
    csr: &ParsedCsr,
    (now, rng): (Timestamp, &mut ThreadRng),
) -> Result<String, SignError> {
    let ca = trust::load_ca(layout, Ca::Kubernetes)?;
    Ok(ca.issue(leaf, csr, now, Serial::random(rng))?)
}

/// A client of an API server that answers.
async fn connect(kubeconfig: &Path) -> Client {
    let mut beat = beat(CONNECT);
    loop {
        beat.tick().await;
        match client::connect(kubeconfig).await {
            // A watch that fails backs off; a request that fails is just sent again.
            Ok(client) if client.apiserver_version().await.is_ok() => return client,
            Ok(_) => tracing::debug!("the API server does not answer yet"),
            Err(error) => tracing::debug!(%error, "no client for the API yet"),
        }
    }
}

async fn replaced(kubeconfig: &Path, version: FileVersion) {
    let mut beat = beat(CREDENTIALS);
    loop {
        beat.tick().await;
        if FileVersion::of(&[kubeconfig]) != version {
            return;
        }
    }
}

fn beat(period: Duration) -> Interval {
    let mut beat = interval(period);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beat
}
