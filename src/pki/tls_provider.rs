//! The cryptography of every TLS connection of this process: ring.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};

/// For configurations that take the provider as an argument.
pub fn tls_provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Makes it the default of this process, for libraries that offer no argument for it (kube, oci-client).
/// May be called any number of times.
pub fn install_tls_provider() {
    // An error means that one is installed, and this function is the only one that installs any.
    let _ = ring::default_provider().install_default();
}
