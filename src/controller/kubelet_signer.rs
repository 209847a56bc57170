//! The signer of kubelets' certificates, as `metalform sign` runs it.
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

use super::certificate_requests::{self, Sign, SignError};
use crate::kube_api::client;
use crate::model::cluster_networks::Networks;
use crate::pki::authorities::Ca;
use crate::pki::certificate_request::ParsedCsr;
use crate::pki::leaf::Leaf;
use crate::pki::serial::Serial;
use crate::workspace::file_version::FileVersion;
use crate::workspace::layout::Layout;
use crate::workspace::trust;

/// Between attempts to reach the API, which starts after this service on the first day.
const CONNECT: Duration = Duration::from_millis(500);
/// Between checks of the kubeconfig.
const CREDENTIALS: Duration = Duration::from_secs(10);

/// Signs until it is dropped, in a cluster with these networks. Failures are logged and tried again.
pub async fn run(layout: Layout, networks: Networks, clock: fn() -> Timestamp) {
    let kubeconfig = layout.admin_conf();
    let credentials = [kubeconfig.as_path()];
    let sign: Arc<Sign> =
        Arc::new(move |leaf: &Leaf, csr: &ParsedCsr| sign(&layout, leaf, csr, (clock(), &mut rand::rng())));
    loop {
        let version = FileVersion::of(&credentials);
        let client = connect(&kubeconfig).await;
        tokio::select! {
            () = certificate_requests::run(client, networks.clone(), Arc::clone(&sign)) => {}
            () = replaced(&credentials, version) => tracing::info!("the kubeconfig was replaced: connecting again"),
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

/// Completes once the files have another version.
pub(super) async fn replaced(files: &[&Path], version: FileVersion) {
    let mut beat = beat(CREDENTIALS);
    loop {
        beat.tick().await;
        if FileVersion::of(files) != version {
            return;
        }
    }
}

fn beat(period: Duration) -> Interval {
    let mut beat = interval(period);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beat
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::certificates::v1::CertificateSigningRequestSpec;
    use rand::SeedableRng;
    use rand::rngs::StdRng;
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
    use serde_json::json;

    use super::*;
    use crate::controller::csr_verdict::{ClusterRecords, CsrVerdict, Profile, verdict};
    use crate::workspace::atomic_file;
    use crate::workspace::trust::Subject;

    const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

    fn kubelet_request() -> ParsedCsr {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name = DistinguishedName::new();
        parameters.distinguished_name.push(DnType::OrganizationName, "system:nodes");
        parameters.distinguished_name.push(DnType::CommonName, "system:node:n1");
        let pem = parameters.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap();
        ParsedCsr::from_pem(pem.as_bytes()).unwrap()
    }

    fn judged(csr: &ParsedCsr) -> Leaf {
        let spec: CertificateSigningRequestSpec = serde_json::from_value(json!({
            "request": "", "signerName": "", "username": "system:node:n1", "usages": ["client auth"],
        }))
        .unwrap();
        let records = ClusterRecords {
            nodes: [("n1".parse().unwrap(), [].into())].into(),
            networks: crate::controller::csr_verdict::tests::networks(),
            guarded: false,
        };
        match verdict(&spec, Profile::KubeletClient, csr, &records) {
            CsrVerdict::Sign(leaf) => leaf,
            CsrVerdict::Deny { reason } => panic!("{reason}"),
        }
    }

    #[test]
    fn what_was_judged_is_signed_with_the_ca_on_the_disk_and_a_lost_ca_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::below(root.path());
        let csr = kubelet_request();
        let leaf = judged(&csr);
        let rng = &mut rand::rng();

        // Nothing is created on an empty disk.
        let error = sign(&layout, &leaf, &csr, (NOW, rng)).unwrap_err();
        assert!(
            error.to_string().contains("etc/kubernetes/pki/ca.key does not exist; restore it"),
            "{error}"
        );
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);

        let subject = Subject {
            name: "bootstrap".parse().unwrap(),
            address: "192.0.2.1".parse().unwrap(),
            indexes: [].into(),
        };
        let trust = trust::create(&layout, &subject, NOW, &mut StdRng::seed_from_u64(1)).unwrap();
        let pem = pem::parse(sign(&layout, &leaf, &csr, (NOW, rng)).unwrap()).unwrap();
        let (_, certificate) = x509_parser::parse_x509_certificate(pem.contents()).unwrap();
        assert_eq!(certificate.subject().to_string(), "O=system:nodes, CN=system:node:n1");
        assert_eq!(certificate.public_key().raw, csr.public_key());
        let ca = pem::parse(trust.authorities.kubernetes.certificate()).unwrap();
        let (_, ca) = x509_parser::parse_x509_certificate(ca.contents()).unwrap();
        certificate.verify_signature(Some(ca.public_key())).unwrap();

        for file in ["ca.crt", "ca.key"] {
            atomic_file::remove(&layout.pki().join(file)).unwrap();
        }
        assert!(sign(&layout, &leaf, &csr, (NOW, rng)).is_err());
        assert!(!layout.pki().join("ca.key").exists());
    }
}
