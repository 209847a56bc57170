//! The authorities' files on the node that issues: read, or made where they are missing.
//!
//! # Guarantees
//! - Nothing that exists is ever overwritten.
//! - A private key has mode 0600 from its first instant, and is whole or not there.
//! - A run that was killed half-way is finished by the next one: a new key waits beside its place as
//!   `ca.key.staged` until its certificate is in place.
//!
//! # Assumptions
//! One process at a time; the caller holds the cluster's lock.

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rand::CryptoRng;

use super::authority::{Authority, AuthorityError};
use super::openpgp::{OpenPgpError, RepositoryKey};
use super::serial::Serial;
use super::service_account::{ServiceAccountKey, ServiceAccountKeyError};

mod publish;

use publish::{PRIVATE, PUBLIC, promote, publish, read};

/// Suffix of a private key whose certificate is not in place yet.
const STAGED: &str = "staged";

/// Everything that a cluster's bootstrap node signs with.
pub struct Authorities {
    /// Of the API server, its clients and the kubelets: `ca.crt`.
    pub kubernetes: Authority,
    /// Of etcd's members and clients: `etcd/ca.crt`.
    pub etcd: Authority,
    /// Of the aggregation layer: `front-proxy-ca.crt`.
    pub front_proxy: Authority,
    /// Signs service account tokens: `sa.key`.
    pub service_account: ServiceAccountKey,
    /// Signs the package repositories.
    pub repository: RepositoryKey,
}

/// Why the authorities cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file or directory could not be read or written.
    #[error("{path}: {reason}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
    /// A private key without its certificate: a new certificate would be another authority's.
    #[error("{key} exists, but its certificate {certificate} does not", key = key.display(), certificate = certificate.display())]
    KeyWithoutCertificate {
        /// What is there.
        key: PathBuf,
        /// What is missing.
        certificate: PathBuf,
    },
    /// A certificate (or public key) without its private key: nothing can be issued with it.
    #[error("{certificate} exists, but its private key {key} does not", key = key.display(), certificate = certificate.display())]
    CertificateWithoutKey {
        /// What is missing.
        key: PathBuf,
        /// What is there.
        certificate: PathBuf,
    },
    /// Public and private half of the service account key differ.
    #[error("{key} and {public} do not belong together", key = key.display(), public = public.display())]
    ServiceAccountMismatch {
        /// Private half.
        key: PathBuf,
        /// Public half.
        public: PathBuf,
    },
    /// The files of an authority are there but of no use.
    #[error("{path}", path = path.display())]
    Authority {
        /// Its certificate.
        path: PathBuf,
        /// Why.
        source: AuthorityError,
    },
    /// The service account key is of no use.
    #[error("{path}", path = path.display())]
    ServiceAccount {
        /// Its private half.
        path: PathBuf,
        /// Why.
        source: ServiceAccountKeyError,
    },
    /// The repository's key is of no use.
    #[error("{path}", path = path.display())]
    Repository {
        /// Its file.
        path: PathBuf,
        /// Why.
        source: OpenPgpError,
    },
}

impl Authorities {
    /// Reads what `pki` (`/etc/kubernetes/pki`) and `repository_key`
    /// (`/var/lib/metalform/repository.key`) hold, and makes what is missing.
    ///
    /// # Errors
    /// When half of a pair is missing, halves do not belong together, or a file cannot be read or written.
    pub fn load_or_create(
        pki: &Path,
        repository_key: &Path,
        now: Timestamp,
        rng: &mut impl CryptoRng,
    ) -> Result<Self, StoreError> {
        let mut authority = |file: &str, name: &str| {
            let pair =
                Pair { certificate: pki.join(format!("{file}.crt")), key: pki.join(format!("{file}.key")) };
            pair.load_or_create(|| Authority::create(name, now, Serial::random(rng)))
        };
        Ok(Self {
            kubernetes: authority("ca", "metalform-kubernetes")?,
            etcd: authority("etcd/ca", "metalform-etcd")?,
            front_proxy: authority("front-proxy-ca", "metalform-front-proxy")?,
            service_account: service_account(pki.join("sa.key"), pki.join("sa.pub"))?,
            repository: repository(repository_key, now, rng)?,
        })
    }
}

/// Where an authority lies.
struct Pair {
    certificate: PathBuf,
    key: PathBuf,
}

impl Pair {
    fn load_or_create(
        self,
        create: impl FnOnce() -> Result<Authority, AuthorityError>,
    ) -> Result<Authority, StoreError> {
        let staged = self.key.with_added_extension(STAGED);
        let (certificate, mut key) = (read(&self.certificate)?, read(&self.key)?);
        if let (Some(_), None, Some(waiting)) = (&certificate, &key, read(&staged)?) {
            promote(&staged, &self.key)?;
            key = Some(waiting);
        }
        match (certificate, key) {
            (Some(certificate), Some(key)) => {
                // A run that was killed while it gave the key its name left two names.
                publish::discard(&staged)?;
                Authority::from_pem(&certificate, &key)
                    .map_err(|source| StoreError::Authority { path: self.certificate, source })
            }
            (None, Some(_)) => {
                Err(StoreError::KeyWithoutCertificate { key: self.key, certificate: self.certificate })
            }
            (Some(_), None) => {
                Err(StoreError::CertificateWithoutKey { key: self.key, certificate: self.certificate })
            }
            (None, None) => {
                let made = create()
                    .map_err(|source| StoreError::Authority { path: self.certificate.clone(), source })?;
                // A key staged by a run that ended before its certificate was written never signed anything.
                publish::discard(&staged)?;
                publish(&staged, made.key(), PRIVATE)?;
                publish(&self.certificate, made.certificate(), PUBLIC)?;
                promote(&staged, &self.key)?;
                Ok(made)
            }
        }
    }
}

/// The public half follows from the private one, so it is written again when it alone is missing.
fn service_account(key: PathBuf, public: PathBuf) -> Result<ServiceAccountKey, StoreError> {
    let unusable = |source| StoreError::ServiceAccount { path: key.clone(), source };
    let stored = read(&public)?;
    let pair = match (read(&key)?, &stored) {
        (Some(private), _) => ServiceAccountKey::from_pem(&private).map_err(unusable)?,
        (None, Some(_)) => return Err(StoreError::CertificateWithoutKey { key, certificate: public }),
        (None, None) => {
            let made = ServiceAccountKey::create().map_err(unusable)?;
            publish(&key, made.private(), PRIVATE)?;
            made
        }
    };
    match stored {
        None => publish(&public, pair.public(), PUBLIC)?,
        Some(stored) if !same_pem(&stored, pair.public()) => {
            return Err(StoreError::ServiceAccountMismatch { key, public });
        }
        Some(_) => {}
    }
    Ok(pair)
}

/// PEM texts may differ in line ends and comments and still say the same.
fn same_pem(one: &str, other: &str) -> bool {
    matches!((pem::parse(one), pem::parse(other)), (Ok(one), Ok(other)) if one.contents() == other.contents())
}

fn repository(path: &Path, now: Timestamp, rng: &mut impl CryptoRng) -> Result<RepositoryKey, StoreError> {
    let unusable = |source| StoreError::Repository { path: path.to_owned(), source };
    if let Some(armor) = read(path)? {
        return RepositoryKey::from_armor(&armor).map_err(unusable);
    }
    let made = RepositoryKey::create("metalform repository", now, rng).map_err(unusable)?;
    publish(path, &made.to_armor().map_err(unusable)?, PRIVATE)?;
    Ok(made)
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
