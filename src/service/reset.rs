//! `reset-host`: makes hosts what they were before they became nodes, or shows what differs.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::cluster_nodes::{self, ClusterNodesError};
use super::command_error::{CommandError, ErrorClass};
use super::file_text::{self, FileTextError};
use super::node_change::ReadNode;
use super::operation_report::{GoalSource, NodeReport, RunOptions, operate};
use super::workspace::goal;
use crate::engine::cancel::Cancel;
use crate::engine::share::{Share, UPLOADS};
use crate::model::document::{Booleans, Document, Problems};
use crate::model::error_chain::error_chain;
use crate::model::event::Event;
use crate::model::facts::Facts;
use crate::model::name::HostName;
use crate::model::node::{NodeManifest, NodeProblems, NodeSpec};
use crate::model::shell_word::quote;
use crate::operation::class::FailureClass;
use crate::operation::cluster_site::{ClusterSite, Ports, Workspace};
use crate::operation::effect::{KeepData, Look, Observation};
use crate::operation::goal::NodeGoal;
use crate::operation::host_reset::inventory::HostDifference;
use crate::operation::inputs::NodeInputs;
use crate::operation::removal_goal::RemoveGoal;
use crate::operation::reset::ResetOperation;
use crate::operation::site::{EffectError, Site};

/// Which hosts.
#[derive(Debug, Clone)]
pub enum ResetSelection {
    /// Those of Nodes of the cluster.
    Named(BTreeSet<HostName>),
    /// That of a Node's manifest; the cluster need not have it any more.
    Manifest(PathBuf),
}

/// Which hosts to reset, and how.
#[derive(Debug, Clone)]
pub struct ResetRequest {
    /// The hosts.
    pub hosts: ResetSelection,
    /// How they are run.
    pub run: RunOptions,
    /// Whether the data of the nodes stays.
    pub keep_data: bool,
}

/// How a host differs from what it was.
#[derive(Debug, Clone)]
pub struct HostComparison {
    /// The Node of its manifest.
    pub name: HostName,
    /// In the order of their kinds and names.
    pub differences: Vec<HostDifference>,
}

/// Why no host was reset.
#[derive(Debug, thiserror::Error)]
pub enum ResetError {
    /// Nodes cannot be read.
    #[error(transparent)]
    Nodes(#[from] ClusterNodesError),
    /// The manifest cannot be read.
    #[error(transparent)]
    File(#[from] FileTextError),
    /// It is no YAML document of a Node.
    #[error(transparent)]
    Syntax(#[from] Problems),
    /// The manifest is wrong.
    #[error("{}: {problems}", file.display())]
    Manifest {
        /// As given.
        file: PathBuf,
        /// Everything that is wrong.
        problems: NodeProblems,
    },
    /// A host cannot be compared.
    #[error("{node}: {}", error_chain(error.as_ref()))]
    Host {
        /// Its Node.
        node: HostName,
        /// Why.
        error: Box<EffectError>,
    },
    /// What metalform has left on hosts.
    #[error("{}", hosts.iter().map(left).collect::<Vec<_>>().join("; "))]
    Left {
        /// How many things, by host.
        hosts: Vec<(HostName, usize)>,
        /// The manifest that named the host, if one did.
        manifest: Option<PathBuf>,
    },
}

fn left((name, count): &(HostName, usize)) -> String {
    format!("{name}: {count} things of a node are left on the host")
}

impl CommandError for ResetError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Nodes(error) => error.class(),
            Self::File(_) | Self::Syntax(_) | Self::Manifest { .. } => ErrorClass::Configuration,
            Self::Host { error, .. } if error.class() == FailureClass::Ssh => ErrorClass::Ssh,
            Self::Host { .. } | Self::Left { .. } => ErrorClass::Host,
        }
    }

    fn errors(&self) -> Vec<String> {
        match self {
            Self::Nodes(error) => error.errors(),
            Self::Left { hosts, .. } => hosts.iter().map(left).collect(),
            _ => self.to_string().lines().map(str::to_owned).collect(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Nodes(ClusterNodesError::Unusable { missing, .. }) if !missing.is_empty() => vec![
                "`metalform reset-host -f FILE` resets the host of a manifest whose Node is deleted"
                    .to_owned(),
            ],
            Self::Nodes(error) => error.hints(),
            Self::Left { manifest: None, .. } => vec!["`metalform reset-host NAME` removes them".to_owned()],
            Self::Left { manifest: Some(file), .. } => {
                let file = file.to_string_lossy();
                vec![format!("`metalform reset-host -f {}` removes them", quote(&file))]
            }
            _ => Vec::new(),
        }
    }
}

/// Resets hosts, one at a time.
///
/// # Errors
/// When no host is known; nothing was done then. Failures of hosts are in the report.
pub async fn reset(
    request: &ResetRequest,
    workspace: Arc<Workspace>,
    cancel: &Cancel,
) -> Result<Vec<NodeReport>, ResetError> {
    let mut reports = Vec::new();
    let specs = specs(&request.hosts, &workspace).await?;
    let at = Instant::now();
    if !request.run.dry_run {
        let line = |spec: &NodeSpec| format!("{}: its host becomes what it was", spec.name);
        (workspace.report)(Event::PlanMade { lines: specs.iter().map(line).collect() });
    }
    for spec in specs {
        let name = spec.name.clone();
        let goal = RemoveGoal {
            node: NodeGoal { leaves: true, ..goal(&workspace, &spec) },
            offline: false,
            force: false,
            kubelet_stopped: false,
            dedicated: false,
            keep_data: KeepData(request.keep_data),
            drain_limit: Duration::ZERO,
            together: BTreeSet::new(),
        };
        let source = match request.hosts {
            // A removal that was waited for has reset the host already.
            ResetSelection::Named(_) => {
                let read = ReadNode { spec: spec.clone(), at: Some(at), may_be_deleted: true };
                GoalSource::Node(Box::new(read))
            }
            ResetSelection::Manifest(_) => GoalSource::Manifest,
        };
        let site = site(&workspace, &goal.node, spec, cancel);
        let node = (name, source);
        reports.push(operate::<ResetOperation>(&goal, node, (&workspace, site), request.run, cancel).await);
    }
    Ok(reports)
}

/// Compares hosts with what was recorded on them.
///
/// # Errors
/// When a host is not known, or cannot be compared.
pub async fn compare(
    request: &ResetRequest,
    workspace: Arc<Workspace>,
    cancel: &Cancel,
) -> Result<Vec<HostComparison>, ResetError> {
    let mut comparisons = Vec::new();
    for spec in specs(&request.hosts, &workspace).await? {
        let name = spec.name.clone();
        let goal = goal(&workspace, &spec);
        let site = site(&workspace, &goal, spec, cancel);
        let compared = differences(&site, goal, KeepData(request.keep_data)).await;
        let differences =
            compared.map_err(|error| ResetError::Host { node: name.clone(), error: Box::new(error) })?;
        comparisons.push(HostComparison { name, differences });
    }
    Ok(comparisons)
}

/// Whether nothing of metalform's was left.
///
/// # Errors
/// How many things were, by host.
pub fn judge(request: &ResetRequest, comparisons: &[HostComparison]) -> Result<(), ResetError> {
    let count = |one: &HostComparison| {
        (one.name.clone(), one.differences.iter().filter(|difference| difference.ours).count())
    };
    let hosts: Vec<_> = comparisons.iter().map(count).filter(|(_, count)| *count > 0).collect();
    let manifest = match &request.hosts {
        ResetSelection::Named(_) => None,
        ResetSelection::Manifest(file) => Some(file.clone()),
    };
    if hosts.is_empty() { Ok(()) } else { Err(ResetError::Left { hosts, manifest }) }
}

/// The facts of one host, and how it differs from what was recorded on it.
///
/// # Errors
/// When it cannot be observed.
pub async fn compare_site(
    site: &dyn Site,
    goal: NodeGoal,
    keep: KeepData,
) -> Result<(Facts, Vec<HostDifference>), EffectError> {
    let look = Look::Facts;
    let Observation::Facts(facts, _) = site.look_in_time(&look).await? else { return Err(unexpected(&look)) };
    // Only names are compared: no state's name depends on the address.
    let address = goal.address(&facts, None).unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    let inputs = NodeInputs {
        goal,
        address,
        facts: facts.clone(),
        joined: false,
        node: None,
        peers: BTreeMap::new(),
        membership: None,
    };
    let look = Look::HostDifferences(Arc::new(inputs), keep);
    match site.look_in_time(&look).await? {
        Observation::HostDifferences(differences) => Ok((facts, differences)),
        _ => Err(unexpected(&look)),
    }
}

/// How one host differs from what was recorded on it. Of a host that metalform has not changed, or has reset since, nothing
/// is metalform's, whatever its name.
async fn differences(
    site: &dyn Site,
    goal: NodeGoal,
    keep: KeepData,
) -> Result<Vec<HostDifference>, EffectError> {
    let Observation::Survey(survey) = site.look_in_time(&Look::Survey).await? else {
        return Err(unexpected(&Look::Survey));
    };
    let (_, mut differences) = compare_site(site, goal, keep).await?;
    differences.iter_mut().for_each(|difference| difference.ours &= !survey.untouched);
    Ok(differences)
}

/// A site answers a look with its own observation.
fn unexpected(look: &Look) -> EffectError {
    EffectError::Impossible { what: look.sentence() }
}

fn site(workspace: &Arc<Workspace>, goal: &NodeGoal, spec: NodeSpec, cancel: &Cancel) -> ClusterSite {
    let ports = Ports::of_command(workspace, &spec, Share::new(cancel.clone(), UPLOADS));
    ClusterSite::new(workspace.clone(), goal.clone(), spec, ports)
}

async fn specs(hosts: &ResetSelection, workspace: &Workspace) -> Result<Vec<NodeSpec>, ResetError> {
    match hosts {
        ResetSelection::Named(names) => {
            let names: Vec<HostName> = names.iter().cloned().collect();
            Ok(cluster_nodes::named(&workspace.layout, &names).await?)
        }
        ResetSelection::Manifest(file) => Ok(vec![read(file)?]),
    }
}

fn read(file: &Path) -> Result<NodeSpec, ResetError> {
    let text = file_text::read(file)?;
    let document = Document { file: &file.display().to_string(), text: &text };
    let manifest: NodeManifest = document.parse(Booleans::Strict)?;
    NodeSpec::parse(&manifest).map_err(|problems| ResetError::Manifest { file: file.to_owned(), problems })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::host_reset::section::Section;

    #[test]
    fn what_is_left_is_removed_by_the_command_that_reaches_the_same_host() {
        let difference = HostDifference {
            section: Section::Package,
            name: "kubelet".to_owned(),
            before: None,
            now: Some(String::new()),
            ours: true,
        };
        let compared = [HostComparison { name: "node-1".parse().unwrap(), differences: vec![difference] }];
        for (hosts, command) in [
            (ResetSelection::Named(["node-1".parse().unwrap()].into()), "`metalform reset-host NAME`"),
            (ResetSelection::Manifest("my node.yaml".into()), "`metalform reset-host -f 'my node.yaml'`"),
        ] {
            let request = ResetRequest { hosts, run: RunOptions::default(), keep_data: false };
            let left = judge(&request, &compared).unwrap_err();
            assert_eq!(left.errors(), ["node-1: 1 things of a node are left on the host"]);
            assert_eq!(left.hints(), [format!("{command} removes them")]);
            judge(&request, &[]).unwrap();
        }
    }
}
