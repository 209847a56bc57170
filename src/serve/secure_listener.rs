//! A TLS server on one address, with a certificate that may be replaced while it runs.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio_rustls::rustls::{self, ServerConfig};

use super::connection_limit::ConnectionLimit;
use super::connections;
use super::reloading_certificate::{CertificateError, ReloadingCertificate};
use crate::pki::tls_provider::tls_provider;

/// Where it listens, and as whom.
#[derive(Debug, Clone)]
pub struct ListenConfig {
    /// Port 0 selects a free one.
    pub listen: SocketAddr,
    /// PEM file: the server's certificate, and those between it and the CA. Read again when it is replaced.
    pub certificate: PathBuf,
    /// PEM file: its private key. Read again when it is replaced.
    pub key: PathBuf,
    /// The present time, by which the end of the certificate is reported.
    pub clock: fn() -> Timestamp,
}

/// Why it does not listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The certificate or its key.
    #[error("cannot use the server's certificate")]
    Certificate(#[from] CertificateError),
    /// No protocol version is available.
    #[error("cannot configure TLS")]
    Tls(#[source] rustls::Error),
    /// The port is in use, or the address is not an address of this machine.
    #[error("cannot listen on {address}")]
    Address {
        address: SocketAddr,
        /// From the operating system.
        source: io::Error,
    },
}

/// It listens, and accepts nothing yet.
pub(super) struct SecureListener {
    address: SocketAddr,
    listener: TcpListener,
    tls: ServerConfig,
}

impl SecureListener {
    /// Reads the certificate and listens.
    ///
    /// # Errors
    /// When the certificate or the address cannot be used.
    pub(super) async fn bind(config: &ListenConfig) -> Result<Self, ListenError> {
        let tls = tls(config)?;
        let failed = |source| ListenError::Address { address: config.listen, source };
        let listener = TcpListener::bind(config.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { address, listener, tls })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` is ready, within the limits of [`connections`] and this one; responses in progress are
    /// completed.
    pub(super) async fn serve(
        self,
        router: Router,
        limit: ConnectionLimit,
        shutdown: impl Future<Output = ()> + Send,
    ) {
        connections::serve(self.listener, self.tls, router, limit, shutdown).await;
    }
}

fn tls(config: &ListenConfig) -> Result<ServerConfig, ListenError> {
    let certificate = ReloadingCertificate::load(&config.certificate, &config.key, config.clock)?;
    let mut tls = ServerConfig::builder_with_provider(tls_provider())
        .with_safe_default_protocol_versions()
        .map_err(ListenError::Tls)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(certificate));
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(tls)
}
