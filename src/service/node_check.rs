//! `node check`: tests the connection to the hosts of Nodes.

use super::cluster_nodes::{self, ClusterNodesError};
use super::command_error::{CommandError, ErrorClass};
use crate::engine::facts::{self, FactsError};
use crate::engine::nonce::Nonce;
use crate::model::error_chain::error_chain;
use crate::model::facts::Facts;
use crate::model::name::HostName;
use crate::model::node::NodeSpec;
use crate::model::ssh_target::{HostKeyPolicy, SshTarget, VerifiedHostKey};
use crate::transport::error::TransportError;
use crate::transport::pool::ConnectionPool;
use crate::transport::ssh::SshTransport;
use crate::transport::{Output, Transport};
use crate::workspace::layout::Layout;

/// Nodes to test.
#[derive(Debug, Clone)]
pub struct NodeCheckRequest {
    /// Names of Nodes.
    pub names: Vec<HostName>,
    /// Host keys to accept and remember, also in place of others.
    pub accept_host_keys: Vec<VerifiedHostKey>,
}

/// A Node whose host can be logged in to.
#[derive(Debug, Clone)]
pub struct CheckedNode {
    /// The Node.
    pub name: HostName,
    /// How its host is logged in to.
    pub target: SshTarget,
    /// The host's facts.
    pub facts: Facts,
}

/// Why a check failed.
#[derive(Debug, thiserror::Error)]
pub enum NodeCheckError {
    /// The Nodes cannot be read.
    #[error(transparent)]
    Nodes(#[from] ClusterNodesError),
    /// The connection failed.
    #[error("{node}: {}", error_chain(error))]
    Connection {
        /// The Node.
        node: HostName,
        /// The host itself, as opposed to a bastion.
        address: String,
        /// What failed.
        error: TransportError,
    },
    /// A host key to accept is of no machine that the connection goes through.
    #[error("{node}: {address} is neither its host nor one of its bastions")]
    NoSuchBastion {
        /// The Node.
        node: HostName,
        /// As it was specified.
        address: String,
    },
    /// A machine has another key than the one to accept.
    #[error("{node}: host key of {address} is {found}, expected {expected}")]
    OtherHostKey {
        /// The Node.
        node: HostName,
        /// The host, or a bastion.
        address: String,
        /// The key's type and fingerprint.
        found: String,
        /// The fingerprint to accept.
        expected: String,
    },
    /// The host's facts are incomplete.
    #[error("{node}: {}", error_chain(error))]
    Facts {
        /// The Node.
        node: HostName,
        /// What is missing.
        error: FactsError,
    },
}

impl CommandError for NodeCheckError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Nodes(error) => error.class(),
            Self::Connection { .. } | Self::OtherHostKey { .. } => ErrorClass::Ssh,
            Self::NoSuchBastion { .. } => ErrorClass::Configuration,
            Self::Facts { .. } => ErrorClass::Host,
        }
    }

    fn errors(&self) -> Vec<String> {
        match self {
            Self::Nodes(error) => error.errors(),
            other => vec![other.to_string()],
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Nodes(error) => error.hints(),
            Self::Connection { node, address, error } => vec![connection_hint(node, address, error)],
            Self::OtherHostKey { .. } => {
                vec!["compare it on the host: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub".to_owned()]
            }
            Self::NoSuchBastion { .. } => {
                vec!["use ADDRESS:PORT of a host in the annotation metalform.dev/ssh-bastion".to_owned()]
            }
            Self::Facts { .. } => Vec::new(),
        }
    }
}

fn connection_hint(node: &HostName, address: &str, error: &TransportError) -> String {
    match error {
        TransportError::HostKeyUnknown { found, host } if host != address => {
            let fingerprint = found.split_whitespace().last().unwrap_or_default();
            format!(
                "if this is the key of the bastion, run `metalform node check {node} --accept-host-key {host}={fingerprint}`"
            )
        }
        TransportError::HostKeyUnknown { found, .. } => {
            let fingerprint = found.split_whitespace().last().unwrap_or_default();
            format!(
                "if this is the key of the host, run `metalform node check {node} --accept-host-key {fingerprint}`"
            )
        }
        TransportError::HostKeyMismatch { .. } => format!(
            "another machine has this address, or the host was reinstalled: fix metalform.dev/ssh-host-key, or run `metalform node check {node} --accept-host-key SHA256:...` with the fingerprint that ssh-keygen -l prints on the host"
        ),
        TransportError::AuthenticationRefused { user, .. } => {
            format!("add /etc/metalform/pki/ssh.pub to ~{user}/.ssh/authorized_keys on the host")
        }
        TransportError::SudoRefused { user, .. } => {
            format!(
                "allow sudo without a password: {user} ALL=(ALL) NOPASSWD: ALL in /etc/sudoers.d/metalform"
            )
        }
        _ => "check that the host is on, and that metalform.dev/ssh-host is its address".to_owned(),
    }
}

/// Logs in to the host of each Node and collects its facts. `report` receives each Node that passed.
///
/// # Errors
/// When the Nodes cannot be read, or for the first host that cannot be logged in to.
pub async fn check(
    request: &NodeCheckRequest,
    layout: &Layout,
    pool: &ConnectionPool,
    report: &mut dyn FnMut(&CheckedNode),
) -> Result<(), NodeCheckError> {
    for spec in cluster_nodes::named(layout, &request.names).await? {
        report(&check_one(&spec, request, pool).await?);
    }
    Ok(())
}

async fn check_one(
    spec: &NodeSpec,
    request: &NodeCheckRequest,
    pool: &ConnectionPool,
) -> Result<CheckedNode, NodeCheckError> {
    let nonce = Nonce::new(rand::random());
    let node = || spec.name.clone();
    // One connection: at each machine, the key that is compared is the key that is remembered.
    let target = spec
        .ssh
        .accepting(&request.accept_host_keys)
        .map_err(|address| NodeCheckError::NoSuchBastion { node: node(), address })?;
    let verified = |address: &str| {
        let mut machines = std::iter::once(&target).chain(target.bastions());
        machines.any(|one| one.address() == address && matches!(one.host_key, HostKeyPolicy::Fingerprint(_)))
    };
    let answer = collect(&pool.ssh(&target), &nonce).await;
    let output = answer.map_err(|error| match error {
        TransportError::HostKeyMismatch { host, found, expected } if verified(&host) => {
            NodeCheckError::OtherHostKey { node: node(), address: host, found, expected }
        }
        error => NodeCheckError::Connection { node: node(), address: target.address(), error },
    })?;
    let facts =
        facts::parse(&nonce, &output).map_err(|error| NodeCheckError::Facts { node: node(), error })?;
    Ok(CheckedNode { name: node(), target, facts })
}

async fn collect(transport: &SshTransport, nonce: &Nonce) -> Result<Output, TransportError> {
    transport.run(&facts::program(nonce), &mut |_| {}).await
}
