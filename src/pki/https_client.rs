//! HTTPS with certificate authorities that the caller chooses.

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::tls_provider::tls_provider;

/// A client that verifies servers with these authorities alone.
///
/// # Errors
/// When there is no such configuration of TLS.
pub fn https_client(authorities: RootCertStore) -> Result<reqwest::ClientBuilder, rustls::Error> {
    let tls = rustls::ClientConfig::builder_with_provider(tls_provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(authorities)
        .with_no_client_auth();
    Ok(reqwest::Client::builder().tls_backend_preconfigured(tls))
}

/// The certificates in a PEM file; `None` where there is none, or one that cannot be read.
pub fn authorities_in(pem: &[u8]) -> Option<RootCertStore> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(certificates.ok()?);
    (added > 0).then_some(roots)
}
