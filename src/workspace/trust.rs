//! The keys that the bootstrap node signs with, and what it issues for itself.
//!
//! # Guarantees
//! - Only [`create`] writes. [`load`], [`files`], [`check`], [`pending`] and [`missing`] only read, and [`Trust::in_memory`]
//!   does not even read.
//! - What is generated is never replaced, nor generated again for a cluster that exists: its loss is
//!   [`TrustError::Lost`]. Nothing is added to the files of another cluster: [`TrustError::OtherCluster`].
//! - Only CAs that are all created together leave the mark of a new cluster, before the first of them exists: with keys
//!   of an earlier cluster, restored ones included, no etcd cluster is ever begun.
//! - What is issued is issued again when it is about to expire, when its CA or key was replaced, or when it was
//!   issued for another subject.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rand::CryptoRng;
use russh::keys::ssh_key::{self, Algorithm, LineEnding, PrivateKey};

use super::atomic_file::{self, FileError};
use super::authority_files::{self, AuthorityFilesError};
use super::issued::Issued;
pub use super::issued::{API, IssueError};
use super::layout::Layout;
use super::trust_file::{Artifact, PRIVATE, PUBLIC, ca_files};
pub use super::trust_file::{Issuer, Subject, TrustFile};
use super::trust_lock::TrustLock;
use crate::model::name::HostName;
use crate::pki::authorities::{Authorities, Ca, GenerateError};
use crate::pki::authority::Authority;
use crate::pki::encryption_key::{encryption_key, is_encryption_key};
use crate::pki::routing_key::{is_routing_key, routing_key};

/// For people who find the file.
const NEW_CLUSTER: &[u8] =
    b"metalform bootstrap may begin an etcd cluster once, and then removes this file.\n";

/// The secrets of a cluster.
pub struct Trust {
    /// Everything that signs.
    pub authorities: Authorities,
    /// Encrypts secrets at rest; base64.
    pub encryption_key: String,
    /// Authenticates routing messages between nodes; hexadecimal digits.
    pub routing_key: String,
}

/// Why the trust cannot be loaded or created.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// A key that signs.
    #[error(transparent)]
    Authorities(#[from] AuthorityFilesError),
    /// Another file.
    #[error(transparent)]
    File(#[from] FileError),
    /// Files of a cluster whose keys are on another machine.
    #[error("this machine has been a node of another cluster: {} exists", path.display())]
    OtherCluster {
        /// The first of them.
        path: PathBuf,
    },
    /// Keys of a cluster that exists.
    #[error(
        "{} lost: {} shows that this cluster was created, and its keys are not generated again; restore from a backup of this node{}",
        list(paths), evidence.display(),
        copies.iter().map(|copy| format!("; {copy}")).collect::<String>()
    )]
    Lost {
        /// The files to restore.
        paths: Vec<PathBuf>,
        /// Where other hosts have the same keys, a sentence each.
        copies: Vec<&'static str>,
        /// A file that was issued with the lost keys.
        evidence: PathBuf,
    },
    /// The encryption key cannot be used.
    #[error("{}: not a key of 32 octets in base64; restore it from a backup of this node", path.display())]
    EncryptionKey {
        /// Its file.
        path: PathBuf,
    },
    /// The routing key cannot be used.
    #[error("{}: not a key of 64 hexadecimal digits; restore it from a backup of this node", path.display())]
    RoutingKey {
        /// Its file.
        path: PathBuf,
    },
    /// A key could not be generated.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// A certificate or signature could not be issued.
    #[error(transparent)]
    Issue(#[from] IssueError),
    /// The SSH key could not be generated or read.
    #[error("SSH key {}: {reason}", path.display())]
    SshKey {
        /// The private key.
        path: PathBuf,
        /// From the library.
        reason: ssh_key::Error,
    },
}

/// A file that [`create`] would write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingFile {
    /// The file.
    pub file: TrustFile,
    /// `does not exist`, `issued by another CA`.
    pub reason: String,
}

impl Trust {
    /// Generates the keys of a cluster in memory, for a dry run: no file is read or written.
    ///
    /// # Errors
    /// When [`create`] could not generate the keys, or could not issue something for `subject`.
    pub fn in_memory(
        subject: &Subject,
        now: Timestamp,
        rng: &mut impl CryptoRng,
    ) -> Result<Self, TrustError> {
        let authorities = Authorities::generate(now, rng)?;
        let issued = Issued { authorities: &authorities, layout: &Layout::default(), subject, now };
        for artifact in Artifact::all(subject) {
            issued.contents(&artifact, rng)?;
        }
        Ok(Self { authorities, encryption_key: encryption_key(rng), routing_key: routing_key(rng) })
    }
}

/// Every file, in the order of creation.
pub fn files(layout: &Layout, subject: &Subject) -> Vec<TrustFile> {
    Artifact::all(subject).iter().flat_map(|artifact| artifact.files(layout)).collect()
}

/// That no key of a living cluster is lost. Only the existence of files is looked at.
///
/// # Errors
/// When keys are lost, or one half of a pair is, or they are of another cluster.
pub fn check(layout: &Layout, subject: &Subject) -> Result<(), TrustError> {
    let _lock = TrustLock::shared(layout)?;
    check_not_lost(layout, &Artifact::all(subject))?;
    absent(layout)?;
    Ok(())
}

/// The files of [`files`] that [`create`] would write, and why.
///
/// # Errors
/// When keys are lost, do not belong together, or are of another cluster, or a file cannot be read.
pub fn pending(layout: &Layout, subject: &Subject, now: Timestamp) -> Result<Vec<PendingFile>, TrustError> {
    let artifacts = Artifact::all(subject);
    let _lock = TrustLock::shared(layout)?;
    check_not_lost(layout, &artifacts)?;
    let absent = absent(layout)?;
    let complete = artifacts.iter().filter(|artifact| artifact.is_irreplaceable()).all(|artifact| {
        let mut secrets = artifact.files(layout).into_iter().filter(|file| file.sensitive);
        secrets.all(|file| !absent.contains(&file.path))
    });
    let authorities = if complete { Some(authority_files::load(layout)?) } else { None };
    let mut pending = Vec::new();
    for artifact in &artifacts {
        let fault = match &authorities {
            _ if !artifact.is_issued() => None,
            None => Some("does not exist".to_owned()),
            Some(authorities) => Issued { authorities, layout, subject, now }.fault(artifact)?,
        };
        for file in artifact.files(layout) {
            match &fault {
                Some(reason) => pending.push(PendingFile { file, reason: reason.clone() }),
                None if absent.contains(&file.path) => {
                    pending.push(PendingFile { file, reason: "does not exist".to_owned() });
                }
                None => {}
            }
        }
    }
    Ok(pending)
}

/// The paths of [`pending`].
///
/// # Errors
/// As [`pending`].
pub fn missing(layout: &Layout, subject: &Subject, now: Timestamp) -> Result<BTreeSet<String>, TrustError> {
    let pending = pending(layout, subject, now)?;
    Ok(pending.into_iter().map(|pending| pending.file.path.display().to_string()).collect())
}

/// Writes the files of [`pending`]. The only function that creates a CA.
///
/// # Errors
/// As [`pending`], and at the first file that cannot be written; those before it remain, and the next call
/// completes them.
pub fn create(
    layout: &Layout,
    subject: &Subject,
    now: Timestamp,
    rng: &mut impl CryptoRng,
) -> Result<Trust, TrustError> {
    let artifacts = Artifact::all(subject);
    let _lock = TrustLock::exclusive(layout)?;
    check_not_lost(layout, &artifacts)?;
    if !has_generated(layout, &artifacts) {
        atomic_file::write(&layout.new_cluster_mark(), NEW_CLUSTER, PUBLIC)?;
    }
    let authorities = authority_files::create(layout, now, rng)?;
    if atomic_file::read(&layout.encryption_key())?.is_none() {
        atomic_file::create(&layout.encryption_key(), encryption_key(rng).as_bytes(), PRIVATE)?;
    }
    if atomic_file::read(&layout.routing_key())?.is_none() {
        atomic_file::create(&layout.routing_key(), routing_key(rng).as_bytes(), PRIVATE)?;
    }
    create_ssh_key(&layout.ssh_key(), &subject.name, rng)?;
    let issued = Issued { authorities: &authorities, layout, subject, now };
    for artifact in artifacts.iter().filter(|artifact| artifact.is_issued()) {
        if issued.fault(artifact)?.is_none() {
            continue;
        }
        // The key before its certificate.
        for (file, content) in issued.contents(artifact, rng)?.iter().rev() {
            atomic_file::write(&file.path, content.as_bytes(), file.mode)?;
        }
    }
    Ok(Trust {
        authorities,
        encryption_key: read_encryption_key(layout)?,
        routing_key: read_routing_key(layout)?,
    })
}

/// Whether [`create`] made the CAs of a cluster whose first etcd member has yet to begin.
pub fn is_new_cluster(layout: &Layout) -> bool {
    layout.new_cluster_mark().exists()
}

/// Removes the mark of a new cluster: its first etcd member has begun.
///
/// # Errors
/// When the file cannot be removed.
pub fn remove_new_cluster_mark(layout: &Layout) -> Result<(), TrustError> {
    Ok(atomic_file::remove(&layout.new_cluster_mark())?)
}

/// Reads what [`create`] wrote. Creates nothing.
///
/// # Errors
/// When a file does not exist or cannot be used; the error names it.
pub fn load(layout: &Layout) -> Result<Trust, TrustError> {
    let _lock = reading(layout, Ca::Kubernetes)?;
    Ok(Trust {
        authorities: authority_files::load(layout)?,
        encryption_key: read_encryption_key(layout)?,
        routing_key: read_routing_key(layout)?,
    })
}

/// Reads one CA. Creates nothing.
///
/// # Errors
/// As [`load`].
pub fn load_ca(layout: &Layout, ca: Ca) -> Result<Authority, TrustError> {
    let _lock = reading(layout, ca)?;
    Ok(authority_files::load_ca(layout, ca)?)
}

/// The lock for reading. Without the directory there is no key of this CA either.
fn reading(layout: &Layout, ca: Ca) -> Result<TrustLock, TrustError> {
    let absent = || AuthorityFilesError::Absent { path: ca_files(layout, ca).1 };
    Ok(TrustLock::shared(layout)?.ok_or_else(absent)?)
}

/// Every node has the certificate of its cluster's CA, and a master some of the keys. Only metalform's bootstrap node
/// has certain others, and before the first of them exists, the mark of a new cluster.
fn check_not_foreign(layout: &Layout, artifacts: &[Artifact]) -> Result<(), TrustError> {
    let exists = |artifact: &Artifact| {
        artifact.files(layout).into_iter().map(|file| file.path).find(|path| path.exists())
    };
    let own = [Artifact::RepositoryKey, Artifact::EncryptionKey, Artifact::RoutingKey, Artifact::SshKey];
    if is_new_cluster(layout) || own.iter().any(|artifact| exists(artifact).is_some()) {
        return Ok(());
    }
    artifacts.iter().find_map(exists).map_or(Ok(()), |path| Err(TrustError::OtherCluster { path }))
}

/// Keys that are gone although something was issued with them: issuing begins when all of them are in place.
fn check_not_lost(layout: &Layout, artifacts: &[Artifact]) -> Result<(), TrustError> {
    check_not_foreign(layout, artifacts)?;
    let mut issued =
        artifacts.iter().filter(|artifact| artifact.is_issued()).flat_map(|one| one.files(layout));
    let Some(evidence) = issued.find(|file| file.path.exists()) else { return Ok(()) };
    let is_gone = |artifact: &Artifact| !artifact.files(layout).iter().any(|file| file.path.exists());
    let lost: Vec<&Artifact> =
        artifacts.iter().filter(|artifact| artifact.is_irreplaceable() && is_gone(artifact)).collect();
    if lost.is_empty() {
        return Ok(());
    }
    Err(TrustError::Lost {
        paths: lost.iter().flat_map(|artifact| artifact.files(layout)).map(|file| file.path).collect(),
        copies: lost.iter().filter_map(|artifact| artifact.copies()).collect(),
        evidence: evidence.path,
    })
}

/// Whether any file exists that a running cluster depends on.
fn has_generated(layout: &Layout, artifacts: &[Artifact]) -> bool {
    let mut generated = artifacts.iter().filter(|artifact| artifact.is_irreplaceable());
    generated.any(|artifact| artifact.files(layout).iter().any(|file| file.path.exists()))
}

/// Generated files that do not exist.
fn absent(layout: &Layout) -> Result<BTreeSet<PathBuf>, AuthorityFilesError> {
    let mut absent = authority_files::absent(layout)?;
    let others = [Artifact::EncryptionKey, Artifact::RoutingKey, Artifact::SshKey];
    let others = others.iter().flat_map(|artifact| artifact.files(layout)).map(|file| file.path);
    absent.extend(others.filter(|path| !path.exists()));
    Ok(absent)
}

fn read_encryption_key(layout: &Layout) -> Result<String, TrustError> {
    let path = layout.encryption_key();
    match atomic_file::read(&path)? {
        None => Err(AuthorityFilesError::Absent { path }.into()),
        Some(key) if is_encryption_key(key.trim()) => Ok(key.trim().to_owned()),
        Some(_) => Err(TrustError::EncryptionKey { path }),
    }
}

fn read_routing_key(layout: &Layout) -> Result<String, TrustError> {
    let path = layout.routing_key();
    match atomic_file::read(&path)? {
        None => Err(AuthorityFilesError::Absent { path }.into()),
        Some(key) if is_routing_key(key.trim()) => Ok(key.trim().to_owned()),
        Some(_) => Err(TrustError::RoutingKey { path }),
    }
}

/// Writes the half that does not exist: the public key follows from the private one.
fn create_ssh_key(path: &Path, name: &HostName, rng: &mut impl CryptoRng) -> Result<(), TrustError> {
    let failed = |reason| TrustError::SshKey { path: path.to_owned(), reason };
    let stored = atomic_file::read(path)?;
    let key = match &stored {
        Some(stored) => PrivateKey::from_openssh(stored).map_err(failed)?,
        None => {
            let mut key = PrivateKey::random(rng, Algorithm::Ed25519).map_err(failed)?;
            key.set_comment(format!("metalform@{name}"));
            key
        }
    };
    let public_path = path.with_extension("pub");
    if stored.is_none() || !public_path.exists() {
        let public = key.public_key().to_openssh().map_err(failed)?;
        atomic_file::write(&public_path, format!("{public}\n").as_bytes(), PUBLIC)?;
    }
    if stored.is_none() {
        let private = key.to_openssh(LineEnding::LF).map_err(failed)?;
        atomic_file::create(path, private.as_bytes(), PRIVATE)?;
    }
    Ok(())
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
#[path = "trust_tests.rs"]
mod tests;
