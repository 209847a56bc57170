//! `bootstrap`: makes this machine the first node of a cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::cluster_changes::ClusterChanges;
use super::command_error::{CommandError, ErrorClass};
use super::image_collection;
use super::node_selection::roles;
use super::operation_report::{GoalSource, NodeReport, RunOptions, operate};
use super::recorded_nodes::{self, RecordedNodesError};
use super::workspace;
use crate::bundle::manifest::BundleManifestError;
use crate::bundle::problem::BundleProblem;
use crate::bundle::verify;
use crate::engine::cancel::Cancel;
use crate::engine::share::{Share, UPLOADS};
use crate::model::api_contract::{METALK8S_VERSION, VERSION};
use crate::model::error_chain::error_chain;
use crate::model::event::Event;
use crate::model::node::{NodeSpec, Taint, role_name};
use crate::model::role::Role;
use crate::model::ssh_target::{HostKeyPolicy, SshTarget};
use crate::operation::bootstrap::{BootstrapGoal, BootstrapOperation};
use crate::operation::cluster_site::{ClusterSite, OBJECTS, Ports, REGISTRY_WRITER, Workspace};
use crate::workspace::atomic_file::FileError;

/// Roles of the bootstrap node of a new cluster, as in MetalK8s' quickstart.
const ROLES: [Role; 4] = [Role::Bootstrap, Role::Master, Role::Etcd, Role::Infra];
/// Roles whose name also taints it, so that no workload is placed there.
const TAINTS: [Role; 2] = [Role::Bootstrap, Role::Infra];

/// Why the bundle cannot be used. Nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum BootstrapError {
    /// Its files cannot be read.
    #[error("{}", error_chain(.0))]
    Unreadable(BundleManifestError),
    /// Files are missing or altered.
    #[error("bundle {}: {} problems", directory.display(), problems.len())]
    Damaged {
        /// The bundle.
        directory: PathBuf,
        /// Never empty.
        problems: BTreeSet<BundleProblem>,
    },
    /// What the bundles bring cannot be recorded.
    #[error(transparent)]
    Record(#[from] FileError),
    /// It is not known what the bootstrap node is.
    #[error(transparent)]
    Nodes(#[from] RecordedNodesError),
}

impl CommandError for BootstrapError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Unreadable(_) => ErrorClass::Configuration,
            Self::Damaged { .. } | Self::Record(_) => ErrorClass::Host,
            Self::Nodes(error) => error.class(),
        }
    }

    fn errors(&self) -> Vec<String> {
        match self {
            Self::Unreadable(_) | Self::Record(_) => vec![self.to_string()],
            Self::Nodes(error) => error.errors(),
            Self::Damaged { directory, problems } => {
                problems.iter().map(|problem| format!("bundle {}: {problem}", directory.display())).collect()
            }
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Unreadable(_) | Self::Record(_) => Vec::new(),
            Self::Nodes(
                RecordedNodesError::Records(_) | RecordedNodesError::Wrong { recorded: true, .. },
            ) => {
                vec![
                    "run it again once the API answers, or move the file away where this node is master, etcd and infra"
                        .to_owned(),
                ]
            }
            Self::Nodes(error) => error.hints(),
            Self::Damaged { .. } => vec!["copy the bundle again, or build it again".to_owned()],
        }
    }
}

/// Bootstraps this machine, or plans it.
///
/// # Errors
/// When the bundle is damaged; nothing was done then. A failure of the run is in the report.
pub async fn bootstrap(
    workspace: Arc<Workspace>,
    run: RunOptions,
    cancel: &Cancel,
) -> Result<(NodeReport, ClusterChanges), BootstrapError> {
    verify(&workspace)?;
    let known = recorded_nodes::find(&workspace.layout, &workspace.subject.name).await?;
    let spec = spec(&workspace, known.as_ref());
    let line = format!("{}: {}", spec.name, roles(&spec));
    let node = workspace::goal(&workspace, &spec);
    let images = workspace.bundles.all().flat_map(|bundle| bundle.manifest.images.keys());
    let goal = BootstrapGoal {
        node: node.clone(),
        images: images.cloned().collect(),
        objects: OBJECTS.map(str::to_owned).into(),
    };
    let ports = Ports::of_command(&workspace, &spec, Share::new(cancel.clone(), UPLOADS));
    let name = node.name.clone();
    let site = ClusterSite::new(workspace.clone(), node, spec, ports);
    if !run.dry_run {
        (workspace.report)(Event::PlanMade { lines: vec![line] });
        image_collection::record(&workspace.layout, &workspace.bundles)?;
    }
    let node = (name, GoalSource::Machine);
    let report = operate::<BootstrapOperation>(&goal, node, (&workspace, site), run, cancel).await;
    if !run.dry_run && report.failure.is_none() {
        recorded_nodes::record(&workspace.layout).await;
    }
    let obsolete_images =
        if report.failure.is_none() { obsolete_images(&workspace, run).await } else { Vec::new() };
    Ok((report, ClusterChanges { obsolete_images, ..ClusterChanges::default() }))
}

/// Removes the images of earlier bundles, or lists them. Where that is not possible, a warning: the cluster works with
/// them too.
async fn obsolete_images(workspace: &Workspace, run: RunOptions) -> Vec<String> {
    let place = (&workspace.layout, Path::new(REGISTRY_WRITER));
    let images = if run.dry_run {
        image_collection::foreseen(place, &workspace.bundles).await
    } else {
        image_collection::collect(place, &workspace.bundles).await
    };
    match images {
        Ok(images) => images.iter().map(ToString::to_string).collect(),
        Err(error) => {
            let reason = error.errors().join("; ");
            tracing::warn!(
                "images of earlier bundles stay in the registry: {reason}; run `metalform bootstrap` again"
            );
            Vec::new()
        }
    }
}

/// A bundle with a file missing or altered would fail on some host later.
fn verify(workspace: &Workspace) -> Result<(), BootstrapError> {
    for bundle in workspace.bundles.all() {
        let problems = verify::files(&bundle.path, &bundle.manifest).map_err(BootstrapError::Unreadable)?;
        if !problems.is_empty() {
            return Err(BootstrapError::Damaged { directory: bundle.path.clone(), problems });
        }
    }
    Ok(())
}

/// What the bootstrap node shall be: with the roles, labels and taints of its Node, where there is one.
pub fn spec(workspace: &Workspace, known: Option<&NodeSpec>) -> NodeSpec {
    let mut roles = known.map_or_else(|| BTreeSet::from(ROLES), |known| known.roles.clone());
    roles.insert(Role::Bootstrap);
    let labels = labels(known, &roles);
    let tainting = TAINTS.iter().map(|role| Taint {
        key: role.label(),
        value: String::new(),
        effect: "NoSchedule".to_owned(),
    });
    NodeSpec {
        name: workspace.subject.name.clone(),
        roles,
        version: None,
        ssh: SshTarget {
            host: workspace.subject.address.to_string(),
            port: 22,
            user: "root".to_owned(),
            identity_files: vec![workspace.layout.ssh_key()],
            identities_only: true,
            sudo: false,
            host_key: HostKeyPolicy::Known,
            bastion: None,
        },
        taints: known.map_or_else(|| tainting.collect(), |known| known.taints.clone()),
        labels,
        control_plane_ip: known.and_then(|known| known.control_plane_ip),
        workload_plane_ip: known.and_then(|known| known.workload_plane_ip),
        provider_id: None,
        warnings: Vec::new(),
    }
}

/// Those of its Node, with exactly these roles, and without a version: it has the one of the first bundle.
fn labels(known: Option<&NodeSpec>, roles: &BTreeSet<Role>) -> BTreeMap<String, String> {
    let is_of_roles = |name: &str| name.parse::<Role>().is_ok_and(|role| roles.contains(&role));
    let mut labels = known.map(|known| known.labels.clone()).unwrap_or_default();
    labels.retain(|label, _| match label.as_str() {
        VERSION | METALK8S_VERSION => false,
        label => role_name(label).is_none_or(is_of_roles),
    });
    for role in roles {
        labels.entry(role.label()).or_default();
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::api_contract::SSH_HOST;
    use crate::model::node::{NodeManifest, NodeMetadata};

    #[test]
    fn a_bootstrap_node_whose_node_was_deleted_gets_its_labels_again() {
        const ZONE: &str = "topology.kubernetes.io/zone";
        let texts = |texts: &[(&str, &str)]| -> BTreeMap<String, String> {
            texts.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
        };
        let names = [Role::Bootstrap, Role::Master, Role::Infra].map(Role::label);
        let [bootstrap, master, infra] = names.each_ref().map(String::as_str);
        let given =
            [(bootstrap, ""), (infra, "true"), (ZONE, "a"), (VERSION, "1.35.3"), (METALK8S_VERSION, "133.0")];
        let metadata = NodeMetadata {
            name: Some("bootstrap".to_owned()),
            labels: texts(&given),
            annotations: texts(&[(SSH_HOST, "192.0.2.1")]),
        };
        let known = NodeSpec::parse(&NodeManifest { metadata, ..NodeManifest::default() }).unwrap();
        for (known, roles, expected) in [
            (None, [Role::Bootstrap, Role::Infra], texts(&[(bootstrap, ""), (infra, "")])),
            (
                Some(&known),
                [Role::Bootstrap, Role::Infra],
                texts(&[(bootstrap, ""), (infra, "true"), (ZONE, "a")]),
            ),
            (
                Some(&known),
                [Role::Bootstrap, Role::Master],
                texts(&[(bootstrap, ""), (master, ""), (ZONE, "a")]),
            ),
        ] {
            assert_eq!(labels(known, &BTreeSet::from(roles)), expected);
        }
    }
}
