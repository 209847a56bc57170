//! Plain TCP and HTTP from the bootstrap node, and the registry on it.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use axum::http::StatusCode;
use tokio::net::{TcpStream, UnixStream};

use crate::bundle::manifest::Bundle;
use crate::kube_api::http_probe::{self, ProbeError};
use crate::registry::bundle_images;
use crate::registry::error::RegistryError;

/// Plain connections from the bootstrap node.
#[async_trait]
pub trait Network: Send + Sync {
    /// Whether a TCP connection is accepted.
    ///
    /// # Errors
    /// When it is not.
    async fn connect(&self, address: SocketAddr) -> std::io::Result<()>;

    /// The status of `http://ADDRESS/path`.
    ///
    /// # Errors
    /// When no status is received before the deadline.
    async fn get(
        &self,
        address: SocketAddr,
        path: &str,
        deadline: Duration,
    ) -> Result<StatusCode, ProbeError>;
}

/// The sockets of this machine.
pub struct TcpNetwork;

#[async_trait]
impl Network for TcpNetwork {
    async fn connect(&self, address: SocketAddr) -> std::io::Result<()> {
        TcpStream::connect(address).await.map(drop)
    }

    async fn get(
        &self,
        address: SocketAddr,
        path: &str,
        deadline: Duration,
    ) -> Result<StatusCode, ProbeError> {
        http_probe::get(address, path, deadline).await
    }
}

/// The registry of the cluster's images.
#[async_trait]
pub trait ImageRegistry: Send + Sync {
    /// Whether a connection to it is accepted.
    ///
    /// # Errors
    /// When it is not.
    async fn connect(&self) -> std::io::Result<()>;

    /// The images of the bundle that it lacks.
    ///
    /// # Errors
    /// When an image's reference is not valid.
    async fn missing(&self, bundle: &Bundle) -> Result<BTreeSet<String>, RegistryError>;

    /// Loads what is missing; returns how many images that were.
    ///
    /// # Errors
    /// When an image cannot be read, or is not accepted.
    async fn load(&self, directory: &Path, bundle: &Bundle) -> Result<usize, RegistryError>;
}

/// A registry of the distribution API at this Unix socket.
pub struct LocalRegistry(pub PathBuf);

#[async_trait]
impl ImageRegistry for LocalRegistry {
    async fn connect(&self) -> std::io::Result<()> {
        UnixStream::connect(&self.0).await.map(drop)
    }

    async fn missing(&self, bundle: &Bundle) -> Result<BTreeSet<String>, RegistryError> {
        bundle_images::missing(bundle, &self.0).await
    }

    async fn load(&self, directory: &Path, bundle: &Bundle) -> Result<usize, RegistryError> {
        bundle_images::load(directory, bundle, &self.0, &|_, _| {}).await
    }
}
