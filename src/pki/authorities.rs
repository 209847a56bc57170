//! The keys that a cluster's bootstrap node signs with.

use jiff::Timestamp;
use rand::CryptoRng;

use super::authority::{Authority, AuthorityError};
use super::openpgp::{OpenPgpError, RepositoryKey};
use super::service_account::{ServiceAccountKey, ServiceAccountKeyError};

/// User ID of the repositories' signing key.
const REPOSITORY_OWNER: &str = "metalform repository";

/// The CAs of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ca {
    /// Of the API server, its clients and the kubelets.
    Kubernetes,
    /// Of etcd's members and clients.
    Etcd,
    /// Of the aggregation layer.
    FrontProxy,
}

impl Ca {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Kubernetes, Self::Etcd, Self::FrontProxy];

    /// Subject common name of its certificate.
    pub fn common_name(self) -> &'static str {
        match self {
            Self::Kubernetes => "metalform-kubernetes",
            Self::Etcd => "metalform-etcd",
            Self::FrontProxy => "metalform-front-proxy",
        }
    }
}

/// Everything that signs.
pub struct Authorities {
    /// Of the API server, its clients and the kubelets.
    pub kubernetes: Authority,
    /// Of etcd's members and clients.
    pub etcd: Authority,
    /// Of the aggregation layer.
    pub front_proxy: Authority,
    /// Signs service account tokens.
    pub service_account: ServiceAccountKey,
    /// Signs the package repositories.
    pub repository: RepositoryKey,
}

/// Why a key was not generated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GenerateError {
    /// A CA.
    #[error("cannot generate the CA {}", ca.common_name())]
    Ca {
        /// Which.
        ca: Ca,
        /// The reason.
        source: AuthorityError,
    },
    /// The service account key.
    #[error(transparent)]
    ServiceAccount(#[from] ServiceAccountKeyError),
    /// The repositories' signing key.
    #[error(transparent)]
    Repository(#[from] OpenPgpError),
}

impl Authorities {
    /// Generates all of them, in memory.
    ///
    /// # Errors
    /// When the clock cannot be expressed in a certificate or signature.
    pub fn generate(now: Timestamp, rng: &mut impl CryptoRng) -> Result<Self, GenerateError> {
        Ok(Self {
            kubernetes: generate_ca(Ca::Kubernetes, now, rng)?,
            etcd: generate_ca(Ca::Etcd, now, rng)?,
            front_proxy: generate_ca(Ca::FrontProxy, now, rng)?,
            service_account: ServiceAccountKey::create(rng)?,
            repository: generate_repository_key(now, rng)?,
        })
    }

    /// One of the CAs.
    pub fn ca(&self, ca: Ca) -> &Authority {
        match ca {
            Ca::Kubernetes => &self.kubernetes,
            Ca::Etcd => &self.etcd,
            Ca::FrontProxy => &self.front_proxy,
        }
    }
}

/// Generates one CA.
///
/// # Errors
/// As [`Authority::create`].
pub fn generate_ca(ca: Ca, now: Timestamp, rng: &mut impl CryptoRng) -> Result<Authority, GenerateError> {
    Authority::create(ca.common_name(), now, rng).map_err(|source| GenerateError::Ca { ca, source })
}

/// Generates the repositories' signing key.
///
/// # Errors
/// As [`RepositoryKey::create`].
pub fn generate_repository_key(
    now: Timestamp,
    rng: &mut impl CryptoRng,
) -> Result<RepositoryKey, GenerateError> {
    Ok(RepositoryKey::create(REPOSITORY_OWNER, now, rng)?)
}
