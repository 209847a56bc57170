//! The Nodes of the cluster, also while there is no API: as they were when it last answered.

use std::time::Duration;

use tokio::time::timeout;

use super::command_error::{CommandError, ErrorClass};
use super::unchanged_name::{self, RenamedMachine};
use crate::kube_api::client::{self, ApiError};
use crate::kube_api::nodes;
use crate::model::error_chain::error_chain;
use crate::model::name::HostName;
use crate::model::node::{NodeManifest, NodeProblems, NodeSpec, is_bare};
use crate::model::role::Role;
use crate::workspace::layout::Layout;
use crate::workspace::node_records::{self, NodeRecordsError};

/// How long the API may take; it is not waited for.
const DEADLINE: Duration = Duration::from_secs(5);

/// Why it is not known which Nodes there are, or what one of them specifies.
#[derive(Debug, thiserror::Error)]
pub enum RecordedNodesError {
    /// The API does not answer, and the records cannot be read.
    #[error(transparent)]
    Records(#[from] NodeRecordsError),
    /// The manifest of the Node is wrong.
    #[error("{}", wrong_lines(*recorded, problems).join("; "))]
    Wrong {
        /// Whether it is a record of the Node: the API does not answer, or has no such Node.
        recorded: bool,
        /// What is wrong with it.
        problems: NodeProblems,
    },
    /// No Node has this name, and the bootstrap node has another one.
    #[error(transparent)]
    Renamed(#[from] RenamedMachine),
}

fn wrong_lines(recorded: bool, problems: &NodeProblems) -> Vec<String> {
    let note = if recorded { " (recorded in /var/lib/metalform/nodes.json)" } else { "" };
    problems.to_string().lines().map(|line| format!("{line}{note}")).collect()
}

impl CommandError for RecordedNodesError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Records(_) | Self::Wrong { .. } => ErrorClass::Configuration,
            Self::Renamed(error) => error.class(),
        }
    }

    fn errors(&self) -> Vec<String> {
        match self {
            Self::Records(_) => vec![self.to_string()],
            Self::Wrong { recorded, problems } => wrong_lines(*recorded, problems),
            Self::Renamed(error) => error.errors(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Records(_) => vec!["run this command as root on the bootstrap node; operations on the cluster record its Nodes there".to_owned()],
            Self::Wrong { .. } => vec!["fix the manifest and run kubectl apply -f again".to_owned()],
            Self::Renamed(error) => error.hints(),
        }
    }
}

/// Records the Nodes as the API has them now. Where that is not possible, a warning: no operation fails of it.
pub async fn record(layout: &Layout) {
    if let Err(reason) = try_record(layout).await {
        tracing::warn!("the Nodes were not recorded on this machine: {reason}");
    }
}

async fn try_record(layout: &Layout) -> Result<(), String> {
    let listed = timeout(DEADLINE, list(layout)).await.map_err(|_| "the API does not answer".to_owned())?;
    let manifests = listed.map_err(|error| error_chain(&error))?;
    // Where they cannot be read, nothing is lost by replacing them.
    let before = node_records::of_cluster(layout).unwrap_or_default();
    node_records::save(layout, &with_right_records(manifests, &before)).map_err(|error| error_chain(&error))
}

/// A Node whose manifest is wrong stays recorded as it was before, where that is right, and so does the bootstrap node,
/// which never leaves, where it was deleted: `metalform bootstrap` creates it again. Pure.
fn with_right_records(listed: Vec<NodeManifest>, before: &[NodeManifest]) -> Vec<NodeManifest> {
    let of_name = |nodes: &[NodeManifest], node: &NodeManifest| {
        nodes.iter().find(|other| other.metadata.name == node.metadata.name).cloned()
    };
    let is_bootstrap = |spec: &NodeSpec| spec.roles.contains(&Role::Bootstrap);
    let deleted = before.iter().filter(|record| {
        of_name(&listed, record).is_none() && NodeSpec::parse(record).is_ok_and(|spec| is_bootstrap(&spec))
    });
    let deleted: Vec<NodeManifest> = deleted.cloned().collect();
    let recorded = |node: NodeManifest| {
        if is_right(&node) {
            return node;
        }
        of_name(before, &node).filter(is_right).unwrap_or(node)
    };
    listed.into_iter().map(recorded).chain(deleted).collect()
}

fn is_right(manifest: &NodeManifest) -> bool {
    NodeSpec::parse(manifest).is_ok()
}

async fn list(layout: &Layout) -> Result<Vec<NodeManifest>, ApiError> {
    let client = client::connect_without_retry(&layout.admin_conf()).await?;
    Ok(nodes::list(&client).await?.iter().map(NodeManifest::from).collect())
}

/// What the manifest of one Node specifies: as the API has it, and where that does not answer, has no such Node or one
/// that a kubelet created, as it was recorded. `None` where there is no such Node, or no cluster yet.
///
/// # Errors
/// When its manifest is wrong, when the records cannot be read and the API does not answer, and when the bootstrap node has
/// another name.
pub async fn find(layout: &Layout, name: &HostName) -> Result<Option<NodeSpec>, RecordedNodesError> {
    found(name, &KnownNodes::read(layout).await?)
}

/// The manifest of one Node, known as by [`find`], right or wrong.
///
/// # Errors
/// When the records cannot be read and the API does not answer.
pub(super) async fn manifest(
    layout: &Layout,
    name: &HostName,
) -> Result<Option<NodeManifest>, NodeRecordsError> {
    let known = KnownNodes::read(layout).await?;
    Ok(known.live(name).or_else(|| known.record(name)).cloned())
}

/// Pure.
fn found(name: &HostName, known: &KnownNodes) -> Result<Option<NodeSpec>, RecordedNodesError> {
    let live = known.live(name);
    let Some(manifest) = live.or_else(|| known.record(name)) else {
        unchanged_name::compare(name, &[known.listed.as_slice(), known.recorded.as_slice()].concat())?;
        return Ok(None);
    };
    let wrong = |problems| RecordedNodesError::Wrong { recorded: live.is_none(), problems };
    NodeSpec::parse(manifest).map(Some).map_err(wrong)
}

/// The Nodes that the API has, and those that were recorded.
struct KnownNodes {
    listed: Vec<NodeManifest>,
    recorded: Vec<NodeManifest>,
}

impl KnownNodes {
    async fn read(layout: &Layout) -> Result<Self, NodeRecordsError> {
        Self::of(listed(layout).await, node_records::of_cluster(layout))
    }

    fn of(
        listed: Option<Vec<NodeManifest>>,
        recorded: Result<Vec<NodeManifest>, NodeRecordsError>,
    ) -> Result<Self, NodeRecordsError> {
        let recorded = match recorded {
            Err(NodeRecordsError::None { .. }) => Vec::new(),
            // The API has more than a record.
            Err(_) if listed.is_some() => Vec::new(),
            recorded => recorded?,
        };
        Ok(Self { listed: listed.unwrap_or_default(), recorded })
    }

    /// A record replaces one that a kubelet created.
    fn live(&self, name: &HostName) -> Option<&NodeManifest> {
        let replaced =
            |node: &NodeManifest| is_bare(&node.metadata.annotations) && self.right_record(name).is_some();
        of_name(&self.listed, name).filter(|node| !replaced(node))
    }

    fn right_record(&self, name: &HostName) -> Option<&NodeManifest> {
        self.record(name).filter(|record| is_right(record))
    }

    fn record(&self, name: &HostName) -> Option<&NodeManifest> {
        of_name(&self.recorded, name)
    }
}

fn of_name<'a>(nodes: &'a [NodeManifest], name: &HostName) -> Option<&'a NodeManifest> {
    nodes.iter().find(|node| node.metadata.name.as_deref() == Some(name.as_str()))
}

/// `None` where the API does not answer.
async fn listed(layout: &Layout) -> Option<Vec<NodeManifest>> {
    timeout(DEADLINE, list(layout)).await.ok()?.ok()
}

/// What the manifests of all Nodes specify: as the API has them, and where it does not answer, as they were recorded. Those
/// that are wrong are left out, with a warning.
///
/// # Errors
/// When they are neither known from the API nor from the records.
pub async fn current(layout: &Layout) -> Result<Vec<NodeSpec>, RecordedNodesError> {
    let manifests = match listed(layout).await {
        Some(manifests) => manifests,
        None => node_records::read(layout)?,
    };
    let mut specs = Vec::new();
    for manifest in &manifests {
        match NodeSpec::parse(manifest) {
            Ok(spec) => specs.push(spec),
            Err(problems) => tracing::warn!("{problems}"),
        }
    }
    Ok(specs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::node::NodeMetadata;

    /// With a role, and the address that a Node must have unless its manifest is wrong.
    fn node(name: &str, role: Role, right: bool) -> NodeManifest {
        let host = ("metalform.dev/ssh-host".to_owned(), "192.0.2.1".to_owned());
        let metadata = NodeMetadata {
            name: Some(name.to_owned()),
            labels: [(role.label(), String::new())].into(),
            annotations: right.then_some(host).into_iter().collect(),
        };
        NodeManifest { metadata, ..NodeManifest::default() }
    }

    fn outcome(
        listed: Option<Vec<NodeManifest>>,
        recorded: Result<Vec<NodeManifest>, NodeRecordsError>,
    ) -> String {
        let known = KnownNodes::of(listed, recorded).map_err(RecordedNodesError::from);
        match known.and_then(|known| found(&"bootstrap".parse().unwrap(), &known)) {
            Ok(None) => "none".to_owned(),
            Ok(Some(spec)) => spec.roles.iter().map(ToString::to_string).collect(),
            Err(error) => format!("{:?}: {}", error.class(), error.errors().join("; ")),
        }
    }

    #[test]
    fn a_node_is_what_the_api_has_of_it_or_else_what_was_recorded() {
        let damaged = || Err(NodeRecordsError::Json { path: "nodes.json".to_owned(), error: damage() });
        let absent = || Err(NodeRecordsError::None { path: "nodes.json".to_owned() });
        let (infra, master) =
            (|| node("bootstrap", Role::Infra, true), || node("bootstrap", Role::Master, true));
        let wrong = || node("bootstrap", Role::Infra, false);
        let other = || node("node-1", Role::Node, true);
        let missing = "Configuration: node bootstrap: annotation metalform.dev/ssh-host is missing";
        for (listed, recorded, expected) in [
            (None, absent(), "none".to_owned()),
            (Some(vec![]), absent(), "none".to_owned()),
            (Some(vec![other()]), Ok(vec![other()]), "none".to_owned()),
            (Some(vec![infra()]), Ok(vec![master()]), "infra".to_owned()),
            (Some(vec![infra()]), damaged(), "infra".to_owned()),
            (None, Ok(vec![other(), master()]), "master".to_owned()),
            // It was deleted: it comes back as it was.
            (Some(vec![other()]), Ok(vec![master()]), "master".to_owned()),
            // Its kubelet created it again, bare: it is completed as it was.
            (Some(vec![wrong()]), Ok(vec![master()]), "master".to_owned()),
            (Some(vec![wrong()]), absent(), missing.to_owned()),
            (Some(vec![wrong()]), Ok(vec![wrong()]), missing.to_owned()),
            (None, Ok(vec![wrong()]), format!("{missing} (recorded in /var/lib/metalform/nodes.json)")),
            (
                Some(vec![node("boot2", Role::Bootstrap, true)]),
                absent(),
                "Refused: this machine is bootstrap, and the bootstrap node of its cluster is boot2"
                    .to_owned(),
            ),
        ] {
            assert_eq!(outcome(listed.clone(), recorded), expected, "{listed:?}");
        }
        assert!(
            outcome(None, damaged()).starts_with("Configuration: nodes.json: "),
            "{}",
            outcome(None, damaged())
        );
    }

    #[test]
    fn a_wrong_node_and_a_deleted_bootstrap_node_are_recorded_as_they_were() {
        let right = || node("bootstrap", Role::Master, true);
        let mut wrong = node("bootstrap", Role::Infra, false);
        wrong.metadata.annotations.insert("metalform.dev/ssh-port".to_owned(), "22".to_owned());
        for (before, recorded) in [(vec![], &wrong), (vec![wrong.clone()], &wrong), (vec![right()], &right())]
        {
            assert_eq!(with_right_records(vec![wrong.clone()], &before), vec![recorded.clone()]);
        }
        let (first, worker) = (node("first", Role::Bootstrap, true), node("node-1", Role::Node, true));
        assert_eq!(with_right_records(vec![right()], &[first.clone(), worker]), [right(), first]);
    }

    fn damage() -> serde_json::Error {
        serde_json::from_str::<Vec<NodeManifest>>("[{").unwrap_err()
    }
}
