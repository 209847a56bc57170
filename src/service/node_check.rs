//! `node check`: tests the connection to the hosts of Nodes, and that they trust metalform's packages alone.

use std::collections::BTreeSet;

use super::cluster_nodes::{self, ClusterNodesError};
use super::command_error::{CommandError, ErrorClass};
use super::host_failure;
use crate::engine::facts::{self, FactsError};
use crate::engine::nonce::Nonce;
use crate::model::error_chain::error_chain;
use crate::model::facts::Facts;
use crate::model::name::HostName;
use crate::model::node::NodeSpec;
use crate::model::platform::PackageFormat;
use crate::model::resumption::ResumedBy;
use crate::model::ssh_target::{HostKeyPolicy, SshTarget, VerifiedHostKey};
use crate::resource::other_package_sources;
use crate::transport::error::TransportError;
use crate::transport::pool::ConnectionPool;
use crate::transport::ssh::SshTransport;
use crate::transport::{Output, Program, Transport};
use crate::workspace::layout::Layout;

/// Where a key is not usable.
const PRIVATE_KEY: &str = "set the private key with metalform.dev/ssh-key-path";

/// The only package source of a node: a resource of `states/node-packages.yaml`.
fn package_source(format: PackageFormat) -> &'static str {
    match format {
        PackageFormat::Deb => "metalform",
        PackageFormat::Rpm => "metalform-rpm",
    }
}

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
    /// Files of package sources that are enabled besides metalform's, on a host that has metalform's.
    pub other_sources: Vec<String>,
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
        /// How its host is logged in to.
        target: Box<SshTarget>,
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
    /// Hosts trust other package sources than metalform's.
    #[error("{}", list(.0))]
    OtherSources(Vec<(HostName, String)>),
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
            Self::Facts { .. } | Self::OtherSources(_) => ErrorClass::Host,
        }
    }

    fn errors(&self) -> Vec<String> {
        match self {
            Self::Nodes(error) => error.errors(),
            Self::OtherSources(found) => found.iter().map(other_source).collect(),
            other => vec![other.to_string()],
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Nodes(error) => error.hints(),
            Self::Connection { node, target, error } => vec![connection_hint(node, target, error)],
            Self::OtherHostKey { .. } => {
                vec!["compare it on the host: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub".to_owned()]
            }
            Self::NoSuchBastion { .. } => {
                vec!["use ADDRESS:PORT of a host in the annotation metalform.dev/ssh-bastion".to_owned()]
            }
            Self::OtherSources(found) => {
                let nodes: BTreeSet<&str> = found.iter().map(|(node, _)| node.as_str()).collect();
                let nodes = nodes.into_iter().collect::<Vec<_>>().join(" ");
                vec![format!(
                    "`metalform deploy-node {nodes}` disables them; `metalform reset-host` gives them back"
                )]
            }
            Self::Facts { .. } => Vec::new(),
        }
    }
}

fn list(found: &[(HostName, String)]) -> String {
    found.iter().map(other_source).collect::<Vec<_>>().join("; ")
}

fn other_source((node, file): &(HostName, String)) -> String {
    format!("{node}: {file} is a package source besides metalform's")
}

/// As [`host_failure::connection_hint`], where the settings are annotations of a Node.
fn connection_hint(node: &HostName, target: &SshTarget, error: &TransportError) -> String {
    match error {
        TransportError::HostKeyUnknown { found, host } if *host != target.address() => {
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
        TransportError::AuthenticationRefused { host, user, .. } => match public_key(target, host) {
            Some(key) => format!("add {key} to ~{user}/.ssh/authorized_keys on {host}"),
            None => PRIVATE_KEY.to_owned(),
        },
        TransportError::IdentityUnreadable { .. } => PRIVATE_KEY.to_owned(),
        TransportError::SudoRefused { user, .. } => {
            format!(
                "allow sudo without a password: {user} ALL=(ALL) NOPASSWD: ALL in /etc/sudoers.d/metalform"
            )
        }
        TransportError::Unreachable { .. } => {
            "check that the host is on, and that metalform.dev/ssh-host is its address".to_owned()
        }
        TransportError::PassphraseMissing { .. }
        | TransportError::KnownHosts { .. }
        | TransportError::NoShell { .. }
        | TransportError::Incompatible { .. }
        | TransportError::Lost { .. }
        | TransportError::Fenced { .. } => host_failure::connection_hint(error, ResumedBy::SameCommand),
    }
}

/// The file of the public key that is offered to the host or the bastion at this address.
fn public_key(target: &SshTarget, address: &str) -> Option<String> {
    let mut machines = std::iter::once(target).chain(target.bastions());
    let machine = machines.find(|machine| machine.address() == address)?;
    let key = machine.identity_files.first()?.display().to_string();
    Some(if key.ends_with(".pub") { key } else { format!("{key}.pub") })
}

/// Logs in to the host of each Node and collects its facts. `report` receives each Node that passed.
///
/// # Errors
/// When the Nodes cannot be read, or for the first host that cannot be logged in to. When all were reported: if a host that
/// has metalform's package source has others too.
pub async fn check(
    request: &NodeCheckRequest,
    layout: &Layout,
    pool: &ConnectionPool,
    report: &mut dyn FnMut(&CheckedNode),
) -> Result<(), NodeCheckError> {
    let mut others = Vec::new();
    for spec in cluster_nodes::named(layout, &request.names).await? {
        let node = check_one(&spec, request, pool).await?;
        report(&node);
        others.extend(node.other_sources.into_iter().map(|file| (node.name.clone(), file)));
    }
    if others.is_empty() { Ok(()) } else { Err(NodeCheckError::OtherSources(others)) }
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
    let transport = pool.ssh(&target);
    let answer = run(&transport, facts::program(&nonce)).await;
    let output = answer.map_err(|error| match error {
        TransportError::HostKeyMismatch { host, found, expected } if verified(&host) => {
            NodeCheckError::OtherHostKey { node: node(), address: host, found, expected }
        }
        error => NodeCheckError::Connection { node: node(), target: Box::new(target.clone()), error },
    })?;
    let facts =
        facts::parse(&nonce, &output).map_err(|error| NodeCheckError::Facts { node: node(), error })?;
    let other_sources = match PackageFormat::of(&facts.os) {
        None => Vec::new(),
        Some(format) => {
            let script = other_package_sources(format, package_source(format));
            let answer = run(&transport, Program { script, payload: Vec::new() }).await;
            let failed =
                |error| NodeCheckError::Connection { node: node(), target: Box::new(target.clone()), error };
            let printed = answer.map_err(failed)?.stdout;
            String::from_utf8_lossy(&printed).lines().map(str::to_owned).collect()
        }
    };
    Ok(CheckedNode { name: node(), target, facts, other_sources })
}

async fn run(transport: &SshTransport, program: Program) -> Result<Output, TransportError> {
    transport.run(&program, &mut |_| {}).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Tree;
    use crate::transport::error::FenceRefusal;
    use crate::transport::secret::PromptError;

    #[test]
    fn each_failure_of_a_connection_has_the_hint_of_a_node() {
        let target = |host: &str, key: &str, bastion: Option<SshTarget>| SshTarget {
            host: host.to_owned(),
            port: 22,
            user: "ops".to_owned(),
            identity_files: vec![key.into()],
            identities_only: true,
            sudo: true,
            host_key: HostKeyPolicy::Known,
            bastion: bastion.map(Box::new),
        };
        let bastion = target("192.0.2.9", "/root/.ssh/agents.pub", None);
        let target = target("192.0.2.1", "/root/.ssh/id_lab", Some(bastion));
        let (host, jump) = (|| "192.0.2.1:22".to_owned(), || "192.0.2.9:22".to_owned());
        let (user, path, reason) = (|| "ops".to_owned(), || "/k".to_owned(), || "why".to_owned());
        let key = || "ssh-ed25519 SHA256:abc".to_owned();
        let refused =
            |host| TransportError::AuthenticationRefused { host, user: user(), keys: "/k".to_owned() };
        let cases = [
            (TransportError::Unreachable { host: host(), reason: reason() }, "metalform.dev/ssh-host is"),
            (
                TransportError::HostKeyMismatch { host: host(), found: key(), expected: key() },
                "fix metalform.dev/ssh-host-key",
            ),
            (
                TransportError::HostKeyUnknown { host: host(), found: key() },
                "`metalform node check node-1 --accept-host-key SHA256:abc`",
            ),
            (
                TransportError::HostKeyUnknown { host: jump(), found: key() },
                "--accept-host-key 192.0.2.9:22=SHA256:abc`",
            ),
            (TransportError::KnownHosts { path: path(), reason: reason() }, "--known-hosts"),
            (TransportError::Incompatible { host: host(), reason: reason() }, "upgrade the SSH server"),
            (refused(host()), "add /root/.ssh/id_lab.pub to ~ops/.ssh/authorized_keys on 192.0.2.1:22"),
            (refused(jump()), "add /root/.ssh/agents.pub to ~ops/.ssh/authorized_keys on 192.0.2.9:22"),
            (
                TransportError::PassphraseMissing { path: path(), error: PromptError::NoTerminal },
                "ssh-add /k, or use --key-passphrase-file",
            ),
            (TransportError::IdentityUnreadable { path: path(), reason: reason() }, PRIVATE_KEY),
            (TransportError::SudoRefused { host: host(), user: user(), reason: reason() }, "ops ALL=(ALL)"),
            (TransportError::Lost { host: host(), reason: reason() }, "run the same command again"),
            (TransportError::NoShell { host: host(), reason: reason() }, "must start a POSIX shell"),
            (
                TransportError::Fenced { host: host(), token: 1, reason: FenceRefusal::Busy },
                "the controllers of Machines",
            ),
        ];
        for (error, expected) in cases {
            let hint = connection_hint(&"node-1".parse().unwrap(), &target, &error);
            assert!(hint.contains(expected) && !hint.contains("roster"), "{error}: {hint}");
        }
    }

    #[test]
    fn the_states_have_the_package_source_of_each_family() {
        let tree = Tree::embedded();
        let lines: Vec<&str> = tree.states().flat_map(|(_, text)| text.lines()).map(str::trim).collect();
        for (format, family) in [(PackageFormat::Deb, "debian"), (PackageFormat::Rpm, "redhat")] {
            let resource = format!("- package_repository: {}", package_source(format));
            let from = lines.iter().position(|line| **line == resource).unwrap();
            let when = lines[from..].iter().find(|line| line.starts_with("when: "));
            assert_eq!(when, Some(&format!("when: facts.os.family == \"{family}\"").as_str()));
        }
    }

    #[test]
    fn every_other_source_is_an_error_of_its_node() {
        let found = [
            ("node-1", "/etc/apt/sources.list"),
            ("node-1", "/etc/apt/sources.list.d/a.list"),
            ("node-2", "/x"),
        ];
        let found = found.map(|(node, file)| (node.parse().unwrap(), file.to_owned()));
        let error = NodeCheckError::OtherSources(found.to_vec());
        assert_eq!(error.errors().len(), 3);
        assert_eq!(error.errors()[2], "node-2: /x is a package source besides metalform's");
        assert!(
            error.hints()[0].starts_with("`metalform deploy-node node-1 node-2` disables"),
            "{:?}",
            error.hints()
        );
        assert_eq!(error.class(), ErrorClass::Host);
    }
}
