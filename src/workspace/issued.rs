//! What the bootstrap node issues for itself: its content, and whether the files still have it.

use jiff::{SignedDuration, Timestamp};
use rand::CryptoRng;

use super::atomic_file::{self, FileError};
use super::layout::Layout;
use super::trust_file::{Artifact, Subject, TrustFile};
use crate::bundle::format::RepositoryIndex;
use crate::model::cluster::MIRROR_NAME;
use crate::pki::authorities::{Authorities, Ca};
use crate::pki::authority::AuthorityError;
use crate::pki::kubeconfig::{Credentials, KubeconfigFile, TrustAnchor};
use crate::pki::leaf::{Leaf, LeafPair, Usage};
use crate::pki::openpgp::OpenPgpError;
use crate::pki::validity::days;

/// URL of the API on every node: the node's own proxy.
pub const API: &str = "https://127.0.0.1:7443";
/// Days of validity of a certificate.
const DAYS: u32 = 365;
/// A certificate that ends sooner than this is issued again.
pub(super) const RENEW_BEFORE: SignedDuration = SignedDuration::from_hours(24 * 90);
/// Cluster of the kubeconfigs.
const CLUSTER: &str = "metalform";
/// User of the administrator's kubeconfig.
const ADMIN: &str = "kubernetes-admin";
/// User of the machine controllers' kubeconfig: `templates/cluster/machines-access.yaml.j2` contains what it may do.
const MACHINE_CONTROLLER: &str = "metalform:machine-controller";

/// Why something cannot be issued.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// A certificate.
    #[error("cannot issue {title}")]
    Certificate {
        /// `the certificate of metalform serve`.
        title: &'static str,
        /// The reason.
        source: AuthorityError,
    },
    /// The signature of a package index.
    #[error("cannot sign the package index {index}")]
    Index {
        /// Path of the signed file.
        index: String,
        /// The reason.
        source: OpenPgpError,
    },
}

/// Issues with these keys, for this subject, at this time.
pub(super) struct Issued<'a> {
    pub(super) authorities: &'a Authorities,
    pub(super) layout: &'a Layout,
    pub(super) subject: &'a Subject,
    pub(super) now: Timestamp,
}

/// The user of an artifact that is a kubeconfig.
fn user(artifact: &Artifact) -> Option<&'static str> {
    match artifact {
        Artifact::AdminConf => Some(ADMIN),
        Artifact::MachineControllerConf => Some(MACHINE_CONTROLLER),
        _ => None,
    }
}

/// The certificate of an artifact.
struct Certificate {
    title: &'static str,
    ca: Ca,
    leaf: Leaf,
}

impl Issued<'_> {
    /// Issues the content of an artifact's files, in the order of [`Artifact::files`]. Touches no file.
    pub(super) fn contents(
        &self,
        artifact: &Artifact,
        rng: &mut impl CryptoRng,
    ) -> Result<Vec<(TrustFile, String)>, IssueError> {
        let contents = match artifact {
            Artifact::SignedIndex(index) => vec![self.sign(index)?],
            _ => match self.certificate(artifact) {
                None => Vec::new(),
                Some(Certificate { title, ca, leaf }) => {
                    let issued = self.authorities.ca(ca).issue_pair(&leaf, self.now, rng);
                    let pair = issued.map_err(|source| IssueError::Certificate { title, source })?;
                    match user(artifact) {
                        Some(user) => vec![self.kubeconfig(user, pair).to_yaml()],
                        None => vec![pair.certificate, pair.key],
                    }
                }
            },
        };
        Ok(artifact.files(self.layout).into_iter().zip(contents).collect())
    }

    /// Why the files of an artifact must be written; `None` when they are good.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub(super) fn fault(&self, artifact: &Artifact) -> Result<Option<String>, FileError> {
        let mut contents = Vec::new();
        for file in artifact.files(self.layout) {
            match atomic_file::read(&file.path)? {
                Some(content) => contents.push(content),
                None => return Ok(Some("does not exist".to_owned())),
            }
        }
        Ok(match (artifact, contents.as_slice()) {
            (Artifact::SignedIndex(index), [signed]) => {
                index.verify(&self.authorities.repository, signed).err().map(|error| error.to_string())
            }
            (_, [yaml]) => user(artifact).and_then(|user| self.kubeconfig_fault(artifact, user, yaml)),
            (_, [certificate, key]) => {
                self.pair_fault(artifact, LeafPair { certificate: certificate.clone(), key: key.clone() })
            }
            _ => None,
        })
    }

    fn certificate(&self, artifact: &Artifact) -> Option<Certificate> {
        let leaf = |common_name: &str, names, usage| Leaf {
            common_name: common_name.to_owned(),
            organization: None,
            names,
            usages: vec![usage],
            lifetime: days(DAYS),
        };
        match artifact {
            Artifact::EtcdClient => Some(Certificate {
                title: "the certificate of metalform as a client of etcd",
                ca: Ca::Etcd,
                leaf: leaf("metalform", Vec::new(), Usage::Client),
            }),
            Artifact::Serve => Some(Certificate {
                title: "the certificate of metalform serve",
                ca: Ca::Kubernetes,
                leaf: leaf("metalform-serve", self.serve_names(), Usage::Server),
            }),
            Artifact::AdminConf => Some(Certificate {
                title: "the certificate of the administrator",
                ca: Ca::Kubernetes,
                leaf: Leaf {
                    organization: Some("system:masters".to_owned()),
                    ..leaf(ADMIN, Vec::new(), Usage::Client)
                },
            }),
            Artifact::MachineControllerConf => Some(Certificate {
                title: "the certificate of the machine controllers",
                ca: Ca::Kubernetes,
                leaf: leaf(MACHINE_CONTROLLER, Vec::new(), Usage::Client),
            }),
            Artifact::MachineMetrics => Some(Certificate {
                title: "the certificate of the metrics of the machine controllers",
                ca: Ca::Kubernetes,
                leaf: leaf("metalform-machine-metrics", self.server_names(), Usage::Server),
            }),
            Artifact::PushServer => Some(Certificate {
                title: "the certificate of the server of image pushes",
                ca: Ca::Kubernetes,
                leaf: leaf("metalform-push", self.server_names(), Usage::Server),
            }),
            _ => None,
        }
    }

    /// Of a server on this node.
    fn server_names(&self) -> Vec<String> {
        let Subject { name, address, .. } = self.subject;
        vec![name.to_string(), address.to_string(), "127.0.0.1".to_owned()]
    }

    /// Of the server that hosts also know by the name of all mirrors.
    fn serve_names(&self) -> Vec<String> {
        let mut names = self.server_names();
        names.push(MIRROR_NAME.to_owned());
        names
    }

    fn kubeconfig(&self, user: &str, LeafPair { certificate, key }: LeafPair) -> KubeconfigFile {
        KubeconfigFile {
            cluster: CLUSTER.to_owned(),
            server: API.to_owned(),
            anchor: TrustAnchor::Embedded(self.authorities.kubernetes.certificate().to_owned()),
            user: user.to_owned(),
            credentials: Credentials::Embedded { certificate, key },
        }
    }

    fn kubeconfig_fault(&self, artifact: &Artifact, user: &str, yaml: &str) -> Option<String> {
        let Some(file) = KubeconfigFile::from_embedded_yaml(yaml) else {
            return Some("is not a kubeconfig with an embedded certificate".to_owned());
        };
        let Credentials::Embedded { certificate, key } = file.credentials.clone() else { return None };
        let pair = LeafPair { certificate, key };
        if file != self.kubeconfig(user, pair.clone()) {
            return Some("has another server or CA".to_owned());
        }
        self.pair_fault(artifact, pair)
    }

    fn pair_fault(&self, artifact: &Artifact, pair: LeafPair) -> Option<String> {
        let Certificate { ca, leaf, .. } = self.certificate(artifact)?;
        let needed_until = self.now.saturating_add(RENEW_BEFORE).unwrap_or(Timestamp::MAX);
        self.authorities.ca(ca).check(&pair, &leaf, needed_until).err().map(|fault| fault.to_string())
    }

    fn sign(&self, index: &RepositoryIndex) -> Result<String, IssueError> {
        let signed = index.sign(&self.authorities.repository, self.now);
        signed.map_err(|source| IssueError::Index { index: index.signed_path.clone(), source })
    }
}
