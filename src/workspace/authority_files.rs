//! The files of [`Authorities`]: loaded, or created in a cluster that does not exist yet.
//!
//! # Guarantees
//! - [`load`] and [`absent`] write nothing.
//! - [`create`] replaces no file. A private key has mode 0600 from its first instant, and is whole or absent.
//! - A creation that was killed is completed by the next one: a new key is staged beside its path as
//!   `ca.key.staged` until its certificate is in place.
//!
//! # Assumptions
//! The caller holds the lock on the keys (`trust_lock.rs`).

use std::collections::BTreeSet;
use std::path::PathBuf;

use jiff::Timestamp;
use rand::CryptoRng;

use super::atomic_file::{self, FileError};
use super::layout::Layout;
use super::trust_file::{PRIVATE, PUBLIC, ca_files, service_account_files};
use crate::pki::authorities::{Authorities, Ca, GenerateError, generate_ca, generate_repository_key};
use crate::pki::authority::{Authority, AuthorityError};
use crate::pki::openpgp::{OpenPgpError, RepositoryKey};
use crate::pki::service_account::{ServiceAccountKey, ServiceAccountKeyError};

/// Suffix of a private key whose certificate is not in place yet.
const STAGED: &str = "staged";

/// Why the keys of the cluster cannot be loaded or created.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityFilesError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Nothing is there.
    #[error(
        "{} does not exist; restore it from a backup of this node, or run `metalform bootstrap` if this is a new cluster",
        path.display()
    )]
    Absent {
        /// The private key.
        path: PathBuf,
    },
    /// The creation of a CA was interrupted.
    #[error("{} is not in place: its creation was interrupted; run `metalform bootstrap` again", key.display())]
    Staged {
        /// The private key.
        key: PathBuf,
    },
    /// A private key without its certificate: a new certificate would be another CA's.
    #[error(
        "{} exists, but its certificate {} does not; restore both from a backup of this node",
        key.display(), certificate.display()
    )]
    KeyWithoutCertificate {
        /// The file that exists.
        key: PathBuf,
        /// The file that does not.
        certificate: PathBuf,
    },
    /// A certificate or public key without its private key.
    #[error(
        "{} exists, but its private key {} does not; restore both from a backup of this node",
        certificate.display(), key.display()
    )]
    CertificateWithoutKey {
        /// The file that does not exist.
        key: PathBuf,
        /// The file that does.
        certificate: PathBuf,
    },
    /// Public and private half of the service account key differ.
    #[error("{} and {} do not belong together", key.display(), public.display())]
    ServiceAccountMismatch {
        /// Private half.
        key: PathBuf,
        /// Public half.
        public: PathBuf,
    },
    /// The files of a CA cannot be used.
    #[error("{}", path.display())]
    Authority {
        /// Its certificate.
        path: PathBuf,
        /// The reason.
        source: AuthorityError,
    },
    /// The service account key cannot be used.
    #[error("{}", path.display())]
    ServiceAccount {
        /// Its private half.
        path: PathBuf,
        /// The reason.
        source: ServiceAccountKeyError,
    },
    /// The repositories' signing key cannot be used.
    #[error("{}", path.display())]
    Repository {
        /// Its file.
        path: PathBuf,
        /// The reason.
        source: OpenPgpError,
    },
    /// A new key could not be generated.
    #[error(transparent)]
    Generate(#[from] GenerateError),
}

/// Loads all of them.
///
/// # Errors
/// At the first file that does not exist or cannot be used.
pub(super) fn load(layout: &Layout) -> Result<Authorities, AuthorityFilesError> {
    let (key, _) = service_account_files(layout);
    let repository = layout.repository_key();
    Ok(Authorities {
        kubernetes: load_ca(layout, Ca::Kubernetes)?,
        etcd: load_ca(layout, Ca::Etcd)?,
        front_proxy: load_ca(layout, Ca::FrontProxy)?,
        service_account: read_service_account(layout)?.ok_or(AuthorityFilesError::Absent { path: key })?,
        repository: read_repository(layout)?.ok_or(AuthorityFilesError::Absent { path: repository })?,
    })
}

/// Loads one CA.
///
/// # Errors
/// When one of its files does not exist or cannot be used.
pub(super) fn load_ca(layout: &Layout, ca: Ca) -> Result<Authority, AuthorityFilesError> {
    let files = CaFiles::new(layout, ca);
    match files.read()? {
        CaState::Complete(authority) => Ok(*authority),
        CaState::KeyStaged => Err(AuthorityFilesError::Staged { key: files.key }),
        CaState::Absent => Err(AuthorityFilesError::Absent { path: files.key }),
    }
}

/// The files that [`create`] would write.
///
/// # Errors
/// When half of a pair does not exist, halves do not belong together, or a file cannot be read.
pub(super) fn absent(layout: &Layout) -> Result<BTreeSet<PathBuf>, AuthorityFilesError> {
    let mut absent = BTreeSet::new();
    for ca in Ca::ALL {
        let files = CaFiles::new(layout, ca);
        match files.read()? {
            CaState::Complete(_) => {}
            CaState::KeyStaged => absent.extend([files.key]),
            CaState::Absent => absent.extend([files.certificate, files.key]),
        }
    }
    let (key, public) = service_account_files(layout);
    match read_service_account(layout)? {
        None => absent.extend([key, public]),
        Some(_) if atomic_file::read(&public)?.is_none() => absent.extend([public]),
        Some(_) => {}
    }
    if read_repository(layout)?.is_none() {
        absent.insert(layout.repository_key());
    }
    Ok(absent)
}

/// Loads those that exist, and generates and writes the others.
///
/// # Errors
/// As [`absent`], and when a file cannot be written.
pub(super) fn create(
    layout: &Layout,
    now: Timestamp,
    rng: &mut impl CryptoRng,
) -> Result<Authorities, AuthorityFilesError> {
    Ok(Authorities {
        kubernetes: create_ca(layout, Ca::Kubernetes, now, rng)?,
        etcd: create_ca(layout, Ca::Etcd, now, rng)?,
        front_proxy: create_ca(layout, Ca::FrontProxy, now, rng)?,
        service_account: create_service_account(layout, rng)?,
        repository: create_repository(layout, now, rng)?,
    })
}

/// The files of one CA.
struct CaFiles {
    certificate: PathBuf,
    key: PathBuf,
    staged: PathBuf,
}

/// What exists of a CA.
enum CaState {
    Complete(Box<Authority>),
    /// Its creation was killed before the key was renamed.
    KeyStaged,
    Absent,
}

impl CaFiles {
    fn new(layout: &Layout, ca: Ca) -> Self {
        let (certificate, key) = ca_files(layout, ca);
        Self { staged: key.with_added_extension(STAGED), certificate, key }
    }

    fn read(&self) -> Result<CaState, AuthorityFilesError> {
        match (atomic_file::read(&self.certificate)?, atomic_file::read(&self.key)?) {
            (Some(certificate), Some(key)) => {
                Ok(CaState::Complete(Box::new(self.parse(&certificate, &key)?)))
            }
            (Some(_), None) if atomic_file::read(&self.staged)?.is_some() => Ok(CaState::KeyStaged),
            (Some(_), None) => Err(self.without_key()),
            (None, Some(_)) => Err(AuthorityFilesError::KeyWithoutCertificate {
                key: self.key.clone(),
                certificate: self.certificate.clone(),
            }),
            (None, None) => Ok(CaState::Absent),
        }
    }

    fn parse(&self, certificate: &str, key: &str) -> Result<Authority, AuthorityFilesError> {
        Authority::from_pem(certificate, key)
            .map_err(|source| AuthorityFilesError::Authority { path: self.certificate.clone(), source })
    }

    fn without_key(&self) -> AuthorityFilesError {
        AuthorityFilesError::CertificateWithoutKey {
            key: self.key.clone(),
            certificate: self.certificate.clone(),
        }
    }
}

fn create_ca(
    layout: &Layout,
    ca: Ca,
    now: Timestamp,
    rng: &mut impl CryptoRng,
) -> Result<Authority, AuthorityFilesError> {
    let files = CaFiles::new(layout, ca);
    match files.read()? {
        CaState::Complete(authority) => {
            // A run that was killed during the rename left the key under both names.
            atomic_file::remove(&files.staged)?;
            Ok(*authority)
        }
        CaState::KeyStaged => {
            atomic_file::rename_new(&files.staged, &files.key)?;
            load_ca(layout, ca)
        }
        CaState::Absent => {
            let authority = generate_ca(ca, now, rng)?;
            // A key that was staged by a run which ended before its certificate was written never signed anything.
            atomic_file::remove(&files.staged)?;
            atomic_file::create(&files.staged, authority.key().as_bytes(), PRIVATE)?;
            atomic_file::create(&files.certificate, authority.certificate().as_bytes(), PUBLIC)?;
            atomic_file::rename_new(&files.staged, &files.key)?;
            Ok(authority)
        }
    }
}

/// The public half follows from the private one, so it may be absent.
fn read_service_account(layout: &Layout) -> Result<Option<ServiceAccountKey>, AuthorityFilesError> {
    let (key, public) = service_account_files(layout);
    let stored = atomic_file::read(&public)?;
    let Some(private) = atomic_file::read(&key)? else {
        return match stored {
            Some(_) => Err(AuthorityFilesError::CertificateWithoutKey { key, certificate: public }),
            None => Ok(None),
        };
    };
    let pair = ServiceAccountKey::from_pem(&private)
        .map_err(|source| AuthorityFilesError::ServiceAccount { path: key.clone(), source })?;
    if stored.is_some_and(|stored| !same_pem(&stored, pair.public())) {
        return Err(AuthorityFilesError::ServiceAccountMismatch { key, public });
    }
    Ok(Some(pair))
}

fn create_service_account(
    layout: &Layout,
    rng: &mut impl CryptoRng,
) -> Result<ServiceAccountKey, AuthorityFilesError> {
    let (key, public) = service_account_files(layout);
    let pair = match read_service_account(layout)? {
        Some(pair) => pair,
        None => {
            let pair = ServiceAccountKey::create(rng).map_err(GenerateError::from)?;
            atomic_file::create(&key, pair.private().as_bytes(), PRIVATE)?;
            pair
        }
    };
    if atomic_file::read(&public)?.is_none() {
        atomic_file::create(&public, pair.public().as_bytes(), PUBLIC)?;
    }
    Ok(pair)
}

/// PEM files may differ in line ends and comments and contain the same.
fn same_pem(one: &str, other: &str) -> bool {
    matches!((pem::parse(one), pem::parse(other)), (Ok(one), Ok(other)) if one.contents() == other.contents())
}

fn read_repository(layout: &Layout) -> Result<Option<RepositoryKey>, AuthorityFilesError> {
    let path = layout.repository_key();
    let Some(armor) = atomic_file::read(&path)? else { return Ok(None) };
    let key = RepositoryKey::from_armor(&armor);
    key.map(Some).map_err(|source| AuthorityFilesError::Repository { path, source })
}

fn create_repository(
    layout: &Layout,
    now: Timestamp,
    rng: &mut impl CryptoRng,
) -> Result<RepositoryKey, AuthorityFilesError> {
    if let Some(key) = read_repository(layout)? {
        return Ok(key);
    }
    let key = generate_repository_key(now, rng)?;
    let armor = key.to_armor().map_err(GenerateError::from)?;
    atomic_file::create(&layout.repository_key(), armor.as_bytes(), PRIVATE)?;
    Ok(key)
}

#[cfg(test)]
#[path = "authority_files_tests.rs"]
mod tests;
