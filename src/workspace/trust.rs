//! What the bootstrap node signs with, and what it issues for itself.
//!
//! # Guarantees
//! An authority that exists is never replaced. What was issued is issued again when it is about to expire, or
//! when the authority is not the one that issued it.

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use rand::CryptoRng;
use russh::keys::ssh_key::{Algorithm, LineEnding, PrivateKey};

use super::layout::Layout;
use crate::bundle::format::RepositoryIndex;
use crate::model::name::HostName;
use crate::pki::authority::{Authority, AuthorityError};
use crate::pki::encryption_key::encryption_key;
use crate::pki::kubeconfig::{Credentials, Kubeconfig, TrustAnchor};
use crate::pki::leaf::{Leaf, LeafPair, Usage};
use crate::pki::openpgp::OpenPgpError;
use crate::pki::serial::Serial;
use crate::pki::store::{Authorities, StoreError};

/// Where every node finds the API: its own proxy.
pub const API: &str = "https://127.0.0.1:7443";
/// Days that a certificate is good for.
const DAYS: u32 = 365;
/// A certificate with less left than this is issued again.
const RENEW_BEFORE: SignedDuration = SignedDuration::from_hours(24 * 90);

/// Everything that is there once the phase holds.
pub struct Trust {
    /// What signs.
    pub authorities: Authorities,
    /// What secrets are encrypted with at rest, base64.
    pub encryption_key: String,
}

/// Why the trust could not be made or read.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// An authority's files.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file of another sort.
    #[error("{}: {reason}", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
    /// A certificate for this machine.
    #[error("the certificate {} cannot be issued", path.display())]
    Issue {
        /// Where it would be.
        path: PathBuf,
        /// Why.
        source: AuthorityError,
    },
    /// The signature of a package index.
    #[error("cannot sign the package index {index}")]
    Sign {
        /// Path of the signed file.
        index: String,
        /// Why.
        source: OpenPgpError,
    },
    /// The key that hosts are reached with.
    #[error("an SSH key cannot be made: {0}")]
    SshKey(russh::keys::ssh_key::Error),
}

/// For whom it is issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The bootstrap node.
    pub name: HostName,
    /// Its address on the control plane.
    pub address: IpAddr,
    /// The bundle's repository indexes.
    pub indexes: Vec<RepositoryIndex>,
}

/// Files that are missing or no longer good, by path.
pub fn missing(layout: &Layout, subject: &Subject, now: Timestamp) -> BTreeSet<String> {
    let mut missing = BTreeSet::new();
    let pki = layout.pki();
    let plain = [
        "ca.crt",
        "ca.key",
        "etcd/ca.crt",
        "etcd/ca.key",
        "front-proxy-ca.crt",
        "front-proxy-ca.key",
        "sa.key",
        "sa.pub",
    ]
    .map(|name| pki.join(name))
    .into_iter()
    .chain([layout.repository_key(), layout.encryption_key(), layout.ssh_key()]);
    missing.extend(plain.filter(|path| !path.exists()));
    for (certificate, _) in [layout.etcd_client(), layout.serve()] {
        if !is_good(&certificate, now) {
            missing.insert(certificate);
        }
    }
    if !embedded_is_good(&layout.admin_conf(), now) {
        missing.insert(layout.admin_conf());
    }
    for index in &subject.indexes {
        let path = layout.signed_indexes().join(&index.signed_path);
        if !is_signed(&path, index) {
            missing.insert(path);
        }
    }
    missing.into_iter().map(|path| path.display().to_string()).collect()
}

/// Makes what is missing, and reads what is there.
///
/// # Errors
/// At the first file that cannot be read or written; what was made before it remains.
pub fn create(
    layout: &Layout,
    subject: &Subject,
    now: Timestamp,
    rng: &mut impl CryptoRng,
) -> Result<Trust, TrustError> {
    let authorities = Authorities::load_or_create(&layout.pki(), &layout.repository_key(), now, rng)?;
    if !layout.encryption_key().exists() {
        write(&layout.encryption_key(), encryption_key(rng).as_bytes(), 0o600)?;
    }
    if !layout.ssh_key().exists() {
        ssh_key(&layout.ssh_key(), &subject.name, rng)?;
    }
    let (certificate, key) = layout.etcd_client();
    if !is_good(&certificate, now) {
        let leaf = leaf("metalform", None, Vec::new(), Usage::Client);
        pair(&authorities.etcd, &leaf, (&certificate, &key), now, rng)?;
    }
    let (certificate, key) = layout.serve();
    if !is_good(&certificate, now) {
        let names = vec![subject.name.to_string(), subject.address.to_string(), "127.0.0.1".to_owned()];
        let leaf = leaf("metalform-serve", None, names, Usage::Server);
        pair(&authorities.kubernetes, &leaf, (&certificate, &key), now, rng)?;
    }
    if !embedded_is_good(&layout.admin_conf(), now) {
        let leaf = leaf("kubernetes-admin", Some("system:masters"), Vec::new(), Usage::Client);
        let issued = issue(&authorities.kubernetes, &leaf, &layout.admin_conf(), now, rng)?;
        let kubeconfig = Kubeconfig {
            cluster: "metalform".to_owned(),
            server: API.to_owned(),
            anchor: TrustAnchor::Embedded(authorities.kubernetes.certificate().to_owned()),
            user: "kubernetes-admin".to_owned(),
            credentials: Credentials::Embedded { certificate: issued.certificate, key: issued.key },
        };
        write(&layout.admin_conf(), kubeconfig.to_yaml().as_bytes(), 0o600)?;
    }
    for index in &subject.indexes {
        let path = layout.signed_indexes().join(&index.signed_path);
        if !is_signed(&path, index) {
            let signed = index
                .sign(&authorities.repository, now)
                .map_err(|source| TrustError::Sign { index: index.signed_path.clone(), source })?;
            write(&path, signed.as_bytes(), 0o644)?;
        }
    }
    load(layout, now, rng)
}

/// Reads what [`create`] made.
///
/// # Errors
/// When something is missing or of no use.
pub fn load(layout: &Layout, now: Timestamp, rng: &mut impl CryptoRng) -> Result<Trust, TrustError> {
    let authorities = Authorities::load_or_create(&layout.pki(), &layout.repository_key(), now, rng)?;
    let encryption_key = read(&layout.encryption_key())?.trim().to_owned();
    Ok(Trust { authorities, encryption_key })
}

fn leaf(common_name: &str, organization: Option<&str>, names: Vec<String>, usage: Usage) -> Leaf {
    Leaf {
        common_name: common_name.to_owned(),
        organization: organization.map(str::to_owned),
        names,
        usages: vec![usage],
        days: DAYS,
    }
}

fn issue(
    authority: &Authority,
    leaf: &Leaf,
    path: &Path,
    now: Timestamp,
    rng: &mut impl CryptoRng,
) -> Result<LeafPair, TrustError> {
    let serial = Serial::random(rng);
    authority
        .issue_pair(leaf, now, serial)
        .map_err(|source| TrustError::Issue { path: path.to_owned(), source })
}

/// The key first: a certificate that is there has its key.
fn pair(
    authority: &Authority,
    leaf: &Leaf,
    (certificate, key): (&Path, &Path),
    now: Timestamp,
    rng: &mut impl CryptoRng,
) -> Result<(), TrustError> {
    let issued = issue(authority, leaf, certificate, now, rng)?;
    write(key, issued.key.as_bytes(), 0o600)?;
    write(certificate, issued.certificate.as_bytes(), 0o644)
}

fn ssh_key(path: &Path, name: &HostName, rng: &mut impl CryptoRng) -> Result<(), TrustError> {
    let mut key = PrivateKey::random(rng, Algorithm::Ed25519).map_err(TrustError::SshKey)?;
    key.set_comment(format!("metalform@{name}"));
    let public = key.public_key().to_openssh().map_err(TrustError::SshKey)?;
    let private = key.to_openssh(LineEnding::LF).map_err(TrustError::SshKey)?;
    write(&path.with_extension("pub"), format!("{public}\n").as_bytes(), 0o644)?;
    write(path, private.as_bytes(), 0o600)
}

fn is_good(certificate: &Path, now: Timestamp) -> bool {
    std::fs::read_to_string(certificate).is_ok_and(|pem| lasts(&pem, now))
}

fn embedded_is_good(kubeconfig: &Path, now: Timestamp) -> bool {
    use base64::Engine as _;
    let Ok(text) = std::fs::read_to_string(kubeconfig) else { return false };
    text.lines()
        .find_map(|line| line.trim().strip_prefix("client-certificate-data:"))
        .and_then(|data| base64::engine::general_purpose::STANDARD.decode(data.trim().trim_matches('"')).ok())
        .is_some_and(|pem| lasts(&String::from_utf8_lossy(&pem), now))
}

/// Whether a certificate is good for long enough.
fn lasts(pem: &str, now: Timestamp) -> bool {
    let Ok((_, block)) = x509_parser::pem::parse_x509_pem(pem.as_bytes()) else { return false };
    block.parse_x509().is_ok_and(|certificate| {
        certificate.validity().not_after.timestamp() > (now + RENEW_BEFORE).as_second()
    })
}

fn is_signed(path: &Path, index: &RepositoryIndex) -> bool {
    std::fs::read_to_string(path).is_ok_and(|signed| index.is_in(&signed))
}

fn read(path: &Path) -> Result<String, TrustError> {
    std::fs::read_to_string(path).map_err(|reason| TrustError::File { path: path.to_owned(), reason })
}

/// Writes beside, syncs, renames; the mode is right from the first instant.
fn write(path: &Path, content: &[u8], mode: u32) -> Result<(), TrustError> {
    let failed = |reason| TrustError::File { path: path.to_owned(), reason };
    let folder = path.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut beside = tempfile::Builder::new()
        .prefix(".metalform-")
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder)
        .map_err(failed)?;
    beside.as_file().set_permissions(Permissions::from_mode(mode)).map_err(failed)?;
    beside.write_all(content).map_err(failed)?;
    beside.as_file().sync_all().map_err(failed)?;
    beside.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::bundle::format::IndexSignature;

    #[test]
    fn what_is_missing_is_made_once_and_stays() {
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::below(root.path());
        let subject = Subject {
            name: "bootstrap".parse().unwrap(),
            address: "192.0.2.1".parse().unwrap(),
            indexes: vec![RepositoryIndex {
                signed_path: "apt/dists/debian-13/InRelease".to_owned(),
                text: "Origin: metalform\nSuite: debian-13\n".to_owned(),
                signature: IndexSignature::Clear,
            }],
        };
        let now: Timestamp = "2026-11-21T09:00:00Z".parse().unwrap();
        assert!(missing(&layout, &subject, now).len() > 10);
        create(&layout, &subject, now, &mut rand::rng()).unwrap();
        assert_eq!(missing(&layout, &subject, now), BTreeSet::new());
        let before = std::fs::read(layout.admin_conf()).unwrap();
        create(&layout, &subject, now, &mut rand::rng()).unwrap();
        assert_eq!(std::fs::read(layout.admin_conf()).unwrap(), before);
        for secret in [
            layout.admin_conf(),
            layout.ssh_key(),
            layout.encryption_key(),
            layout.serve().1,
            layout.etcd_client().1,
        ] {
            assert_eq!(std::fs::metadata(&secret).unwrap().mode() & 0o777, 0o600, "{}", secret.display());
        }
        let later = now + SignedDuration::from_hours(24 * 300);
        assert_eq!(missing(&layout, &subject, later).len(), 3, "three certificates are due for renewal");
    }
}
