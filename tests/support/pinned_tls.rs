//! TLS clients of servers with a certificate of their own.

use metalform::pki::tls_provider::tls_provider;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// A client that trusts this certificate alone.
pub fn trusting(certificate: &rcgen::Certificate) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    ClientConfig::builder_with_provider(tls_provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}
