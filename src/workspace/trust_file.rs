//! The one list of the files that make up the trust of a cluster on its bootstrap node.

use std::net::IpAddr;
use std::path::PathBuf;

use super::layout::Layout;
use crate::bundle::format::RepositoryIndex;
use crate::model::name::HostName;
use crate::pki::authorities::Ca;

/// Mode of a private key, and of files that contain one.
pub const PRIVATE: u32 = 0o600;
/// Mode of the private key of `metalform serve`, which runs as a user in the group of the file.
pub const OF_GROUP: u32 = 0o640;
/// Mode of a certificate or public key.
pub const PUBLIC: u32 = 0o644;

/// What certificates and indexes are issued for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The bootstrap node.
    pub name: HostName,
    /// Its address on the control plane.
    pub address: IpAddr,
    /// The bundle's repository indexes.
    pub indexes: Vec<RepositoryIndex>,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustFile {
    /// Where it is.
    pub path: PathBuf,
    /// Permission bits.
    pub mode: u32,
    /// What vouches for its content.
    pub issuer: Issuer,
    /// Whether it contains a secret, which no diff may show.
    pub sensitive: bool,
}

/// Where the content of a file comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Issuer {
    /// Generated once per cluster and never replaced.
    Generated,
    /// Issued by a CA, and issued again when needed.
    Ca(Ca),
    /// Signed with the repositories' key, and signed again when needed.
    RepositoryKey,
}

/// What is created together, in the order of creation: what issues precedes what is issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Artifact {
    Ca(Ca),
    ServiceAccount,
    RepositoryKey,
    EncryptionKey,
    RoutingKey,
    SshKey,
    EtcdClient,
    Serve,
    AdminConf,
    MachineControllerConf,
    MachineMetrics,
    PushServer,
    SignedIndex(RepositoryIndex),
}

impl Artifact {
    /// All of them.
    pub(super) fn all(subject: &Subject) -> Vec<Self> {
        let cas = Ca::ALL.into_iter().map(Self::Ca);
        let rest = [
            Self::ServiceAccount,
            Self::RepositoryKey,
            Self::EncryptionKey,
            Self::RoutingKey,
            Self::SshKey,
            Self::EtcdClient,
            Self::Serve,
            Self::AdminConf,
            Self::MachineControllerConf,
            Self::MachineMetrics,
            Self::PushServer,
        ];
        cas.chain(rest).chain(subject.indexes.iter().cloned().map(Self::SignedIndex)).collect()
    }

    /// Its files.
    pub(super) fn files(&self, layout: &Layout) -> Vec<TrustFile> {
        let issuer = self.issuer();
        let private = |path| TrustFile { path, mode: PRIVATE, issuer, sensitive: true };
        let public = |path| TrustFile { path, mode: PUBLIC, issuer, sensitive: false };
        let pair = |(certificate, key)| vec![public(certificate), private(key)];
        let of_group =
            |(certificate, key)| vec![public(certificate), TrustFile { mode: OF_GROUP, ..private(key) }];
        match self {
            Self::Ca(ca) => pair(ca_files(layout, *ca)),
            Self::ServiceAccount => {
                let (key, certificate) = service_account_files(layout);
                pair((certificate, key))
            }
            Self::RepositoryKey => vec![private(layout.repository_key())],
            Self::EncryptionKey => vec![private(layout.encryption_key())],
            Self::RoutingKey => vec![private(layout.routing_key())],
            Self::SshKey => {
                let key = layout.ssh_key();
                pair((key.with_extension("pub"), key))
            }
            Self::EtcdClient => pair(layout.etcd_client()),
            Self::Serve => of_group(layout.serve()),
            Self::PushServer => of_group(layout.push_server()),
            Self::AdminConf => vec![private(layout.admin_conf())],
            Self::MachineControllerConf => vec![private(layout.machine_controller_conf())],
            Self::MachineMetrics => pair(layout.machine_metrics()),
            Self::SignedIndex(index) => vec![public(layout.signed_indexes().join(&index.signed_path))],
        }
    }

    fn issuer(&self) -> Issuer {
        match self {
            Self::Ca(_)
            | Self::ServiceAccount
            | Self::RepositoryKey
            | Self::EncryptionKey
            | Self::RoutingKey
            | Self::SshKey => Issuer::Generated,
            Self::EtcdClient => Issuer::Ca(Ca::Etcd),
            Self::Serve
            | Self::AdminConf
            | Self::MachineControllerConf
            | Self::MachineMetrics
            | Self::PushServer => Issuer::Ca(Ca::Kubernetes),
            Self::SignedIndex(_) => Issuer::RepositoryKey,
        }
    }

    /// Whether a running cluster depends on this very content, so that no new one may be generated for it.
    pub(super) fn is_irreplaceable(&self) -> bool {
        let issues = matches!(self, Self::Ca(_) | Self::ServiceAccount | Self::RepositoryKey);
        issues || matches!(self, Self::EncryptionKey | Self::RoutingKey)
    }

    /// Which other hosts have the same content; as the states write it there.
    pub(super) fn copies(&self) -> Option<&'static str> {
        match self {
            Self::ServiceAccount => {
                Some("every other master has the same sa.key and sa.pub in /etc/kubernetes/pki")
            }
            Self::EncryptionKey => {
                Some("/etc/kubernetes/encryption.yaml of every master has the same key as its secret")
            }
            Self::RoutingKey => Some("/etc/bird/bird.conf of every node has the same key as its password"),
            _ => None,
        }
    }

    /// Whether it exists only after everything that is generated was in place.
    pub(super) fn is_issued(&self) -> bool {
        self.issuer() != Issuer::Generated
    }
}

/// Certificate and private key of a CA.
pub(super) fn ca_files(layout: &Layout, ca: Ca) -> (PathBuf, PathBuf) {
    let name = match ca {
        Ca::Kubernetes => "ca",
        Ca::Etcd => "etcd/ca",
        Ca::FrontProxy => "front-proxy-ca",
    };
    (layout.pki().join(format!("{name}.crt")), layout.pki().join(format!("{name}.key")))
}

/// Private and public key that sign service account tokens.
pub(super) fn service_account_files(layout: &Layout) -> (PathBuf, PathBuf) {
    (layout.pki().join("sa.key"), layout.pki().join("sa.pub"))
}
