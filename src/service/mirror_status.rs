//! `mirror status`: what the bootstrap node and each mirror have.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use serde::Serialize;
use tokio::time::timeout;

use super::command_error::{CommandError, ErrorClass};
use super::recorded_nodes::{self, RecordedNodesError};
use crate::mirror::contents::MirrorContents;
use crate::mirror::origin::{Origin, OriginError};
use crate::model::cluster::SERVE_PORT;
use crate::model::error_chain::error_chain;
use crate::model::name::HostName;
use crate::model::node::NodeSpec;
use crate::model::role::Role;
use crate::workspace::layout::Layout;

/// How long a server may take to answer.
const DEADLINE: Duration = Duration::from_secs(10);

/// A server of packages and images.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerStatus {
    /// Its node.
    pub node: HostName,
    /// Its address on the control plane; absent before the node was deployed.
    pub address: Option<IpAddr>,
    /// Whether it has what the bootstrap node has.
    pub state: ServerState,
    /// Versions of Kubernetes of its bundles.
    pub bundles: Vec<String>,
    /// Number of its images.
    pub images: usize,
    /// When a mirror was last equal to the bootstrap node.
    pub synced: Option<Timestamp>,
    /// What it lacks, or why it does not answer.
    pub errors: Vec<String>,
}

/// Whether a server has what the bootstrap node has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerState {
    /// It is the bootstrap node.
    Origin,
    /// It has everything.
    Whole,
    /// It lacks something: its next sync copies it.
    Behind,
    /// It does not answer.
    Unreachable,
    /// It answers; the bootstrap node, which it would be compared with, does not.
    Unknown,
}

/// Why nothing is known.
#[derive(Debug, thiserror::Error)]
pub enum MirrorStatusError {
    /// Of the Nodes.
    #[error(transparent)]
    Nodes(#[from] RecordedNodesError),
    /// This is not the bootstrap node.
    #[error("{}: {reason}", path.display())]
    Authority {
        /// The certificate of the CA.
        path: PathBuf,
        /// From the operating system.
        reason: io::Error,
    },
}

/// Servers are not all whole.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct NotWhole(Vec<String>);

impl CommandError for MirrorStatusError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Nodes(error) => error.class(),
            Self::Authority { .. } => ErrorClass::Configuration,
        }
    }

    fn errors(&self) -> Vec<String> {
        vec![self.to_string()]
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Nodes(error) => error.hints(),
            Self::Authority { .. } => vec!["run this command on the bootstrap node, as root".to_owned()],
        }
    }
}

impl CommandError for NotWhole {
    fn class(&self) -> ErrorClass {
        ErrorClass::Host
    }

    fn errors(&self) -> Vec<String> {
        self.0.clone()
    }

    fn hints(&self) -> Vec<String> {
        vec!["on a mirror, `journalctl -u metalform-mirror-sync` shows why it is behind".to_owned()]
    }
}

/// Asks the bootstrap node and all mirrors at once; the bootstrap node first, the others by name.
///
/// # Errors
/// When the Nodes or the CA cannot be read.
pub async fn status(layout: &Layout) -> Result<Vec<ServerStatus>, MirrorStatusError> {
    let path = layout.pki().join("ca.crt");
    let authority = std::fs::read(&path).map_err(|reason| MirrorStatusError::Authority { path, reason })?;
    let mut nodes: Vec<NodeSpec> = recorded_nodes::current(layout).await?;
    nodes.retain(|node| [Role::Bootstrap, Role::Mirror].iter().any(|role| node.roles.contains(role)));
    nodes.sort_by_key(|node| (!node.roles.contains(&Role::Bootstrap), node.name.clone()));
    let answers = join_all(nodes.iter().map(|node| contents(node, &authority))).await;
    Ok(compared(nodes.into_iter().zip(answers).collect()))
}

async fn contents(node: &NodeSpec, authority: &[u8]) -> Result<MirrorContents, String> {
    let Some(address) = node.control_plane_ip else { return Err("the node is not deployed".to_owned()) };
    let url = format!("https://{}", SocketAddr::new(address, SERVE_PORT));
    let asked = async { Origin::new(&url, authority)?.contents().await };
    let answer: Result<MirrorContents, OriginError> = timeout(DEADLINE, asked)
        .await
        .map_err(|_| format!("{url} does not answer within {} s", DEADLINE.as_secs()))?;
    answer.map_err(|error| error_chain(&error))
}

/// Pure.
fn compared(answers: Vec<(NodeSpec, Result<MirrorContents, String>)>) -> Vec<ServerStatus> {
    let is_origin = |node: &NodeSpec| node.roles.contains(&Role::Bootstrap);
    let origin = answers.iter().find(|(node, _)| is_origin(node)).and_then(|(_, answer)| answer.clone().ok());
    let of_server = |(node, answer): (NodeSpec, Result<MirrorContents, String>)| {
        let lacking = |contents: &MirrorContents| {
            let items = origin.iter().flat_map(|origin| contents.lacks_of(origin));
            items.map(|item| format!("lacks {item}")).collect::<Vec<String>>()
        };
        let (state, errors) = match &answer {
            Err(error) => (ServerState::Unreachable, vec![error.clone()]),
            Ok(_) if is_origin(&node) => (ServerState::Origin, Vec::new()),
            Ok(_) if origin.is_none() => (ServerState::Unknown, Vec::new()),
            Ok(contents) => match lacking(contents) {
                none if none.is_empty() => (ServerState::Whole, none),
                lacking => (ServerState::Behind, lacking),
            },
        };
        let contents = answer.unwrap_or_default();
        ServerStatus {
            node: node.name,
            address: node.control_plane_ip,
            state,
            bundles: contents.bundles.into_keys().collect(),
            images: contents.images.len(),
            synced: contents.synced,
            errors,
        }
    };
    answers.into_iter().map(of_server).collect()
}

/// That every server answers and has everything.
///
/// # Errors
/// One line for each thing that is not so.
pub fn check_whole(servers: &[ServerStatus]) -> Result<(), NotWhole> {
    let lines: Vec<String> = servers
        .iter()
        .flat_map(|server| server.errors.iter().map(move |error| format!("{}: {error}", server.node)))
        .collect();
    if lines.is_empty() { Ok(()) } else { Err(NotWhole(lines)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::digest::Sha256;
    use crate::model::node::{NodeManifest, NodeMetadata};

    fn node(name: &str, role: &str) -> NodeSpec {
        let metadata = NodeMetadata {
            name: Some(name.to_owned()),
            labels: [(role.to_owned(), String::new())].into(),
            annotations: [
                ("metalform.dev/ssh-host".to_owned(), name.to_owned()),
                ("metalform.dev/control-plane-ip".to_owned(), "192.0.2.1".to_owned()),
            ]
            .into(),
        };
        NodeSpec::parse(&NodeManifest { metadata, ..NodeManifest::default() }).unwrap()
    }

    fn with_bundles(versions: &[&str]) -> MirrorContents {
        let bundles = versions.iter().map(|version| ((*version).to_owned(), Sha256::of(version.as_bytes())));
        MirrorContents { bundles: bundles.collect(), ..MirrorContents::default() }
    }

    #[test]
    fn a_mirror_is_compared_with_the_bootstrap_node_where_that_one_answers() {
        let whole = || Ok(with_bundles(&["1.34.4", "1.35.4"]));
        let behind = || Ok(with_bundles(&["1.34.4"]));
        let dead = || Err("no response".to_owned());
        let cases = [
            ((whole(), whole()), (ServerState::Origin, ServerState::Whole), vec![]),
            ((whole(), behind()), (ServerState::Origin, ServerState::Behind), vec!["b: lacks bundle 1.35.4"]),
            ((whole(), dead()), (ServerState::Origin, ServerState::Unreachable), vec!["b: no response"]),
            ((dead(), behind()), (ServerState::Unreachable, ServerState::Unknown), vec!["a: no response"]),
        ];
        for ((origin, mirror), states, errors) in cases {
            let servers = compared(vec![
                (node("a", "node-role.kubernetes.io/bootstrap"), origin),
                (node("b", "metalform.dev/mirror"), mirror),
            ]);
            assert_eq!((servers[0].state, servers[1].state), states);
            let found = check_whole(&servers).err().map_or_else(Vec::new, |error| error.errors());
            assert_eq!(found, errors);
        }
    }
}
