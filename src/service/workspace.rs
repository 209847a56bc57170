//! What commands on the bootstrap node begin with: the configuration, the bundle and the states.

use std::path::PathBuf;
use std::sync::Arc;

use ipnet::IpNet;
use jiff::Timestamp;

use super::command_error::{CommandError, ErrorClass};
use super::file_text::{self, FileTextError};
use super::own_address::own_address;
use super::ssh_options::{SshEnvironment, SshOptionsError};
use super::states::{self, StatesError};
use super::unchanged_name::{self, RenamedMachine};
use super::workspace_origin::WorkspaceOrigin;
use crate::bundle::cluster_bundles::{BundleDirectory, ClusterBundles, ClusterBundlesError};
use crate::bundle::format::{IndexPaths, RepositoryIndex};
use crate::bundle::manifest::BundleManifestError;
use crate::bundle::program_needs::ProgramNeeds;
use crate::engine::facts::{self, FactsError};
use crate::engine::nonce::Nonce;
use crate::model::bootstrap_configuration::BootstrapConfiguration;
use crate::model::document::{Document, Problems};
use crate::model::error_chain::error_chain;
use crate::model::event::Event;
use crate::model::facts::Facts;
use crate::model::name::{HostName, NameError};
use crate::model::node::NodeSpec;
use crate::operation::cluster_site::{ProgramDigest, Workspace};
use crate::operation::goal::{NodeGoal, addresses_in};
use crate::operation::present_networks::PresentNetworks;
use crate::transport::Transport;
use crate::transport::error::TransportError;
use crate::transport::local::LocalTransport;
use crate::workspace::layout::Layout;
use crate::workspace::node_records::NodeRecordsError;
use crate::workspace::trust::{self, Subject, TrustError};

/// What a workspace is opened with.
pub struct WorkspaceRequest {
    /// Where files are on this machine.
    pub layout: Layout,
    /// Where states are read, and how hosts are logged in to.
    pub origin: WorkspaceOrigin,
    /// What `ssh` takes from its user.
    pub ssh_environment: SshEnvironment,
    /// The clock.
    pub clock: fn() -> Timestamp,
    /// Receives what happens while operations run.
    pub events: Arc<dyn Fn(Event) + Send + Sync>,
}

/// Why there is no workspace on this machine.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The process is not root.
    #[error("this command must be run as root on the bootstrap node")]
    NotRoot,
    /// The configuration cannot be read.
    #[error(transparent)]
    Unreadable(#[from] FileTextError),
    /// The configuration is wrong.
    #[error("{problems}")]
    Configuration {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problems: Problems,
    },
    /// The facts of this machine cannot be collected.
    #[error("{}", error_chain(.0))]
    Local(#[from] TransportError),
    /// The facts of this machine are incomplete.
    #[error("{}", error_chain(.0))]
    Facts(#[from] FactsError),
    /// No address of this machine is on the control plane.
    #[error("this machine has no address on the control plane ({})", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    NoAddress(Vec<IpNet>),
    /// This machine has several addresses on the control plane, and it is not known which of them its Node records.
    #[error(transparent)]
    Nodes(#[from] NodeRecordsError),
    /// The hostname is no valid name of a Node.
    #[error("{}", error_chain(.0))]
    Hostname(NameError),
    /// The configuration is for another machine.
    #[error("this machine is {found}, but ca.node is {expected}")]
    OtherMachine {
        /// The hostname.
        found: HostName,
        /// `ca.node`.
        expected: HostName,
    },
    /// The hostname has changed since this machine became the bootstrap node.
    #[error(transparent)]
    Renamed(#[from] RenamedMachine),
    /// The bundles cannot be used.
    #[error(transparent)]
    Bundles(#[from] ClusterBundlesError),
    /// A package index of the bundle cannot be read.
    #[error("{}: {error}", path.display())]
    PackageIndex {
        /// The bundle's directory.
        directory: PathBuf,
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// Keys of the cluster are lost.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The states.
    #[error(transparent)]
    States(#[from] StatesError),
    /// The SSH options cannot be used.
    #[error(transparent)]
    Ssh(#[from] SshOptionsError),
    /// The running executable cannot be located or read.
    #[error("/proc/self/exe: {0}")]
    Executable(std::io::Error),
}

impl CommandError for WorkspaceError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Local(_) | Self::Facts(_) => ErrorClass::Host,
            Self::States(error) => error.class(),
            Self::Renamed(error) => error.class(),
            Self::Ssh(error) => error.class(),
            Self::Executable(_) => ErrorClass::Bug,
            _ => ErrorClass::Configuration,
        }
    }

    fn errors(&self) -> Vec<String> {
        match self {
            Self::Configuration { problems, .. } => problems.0.iter().map(ToString::to_string).collect(),
            Self::States(error) => error.errors(),
            Self::Ssh(error) => error.errors(),
            other => vec![other.to_string()],
        }
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::NotRoot => "run it with sudo".to_owned(),
            Self::Unreadable(_) => {
                "create this file; it describes the cluster, and README.md has an example".to_owned()
            }
            Self::Configuration { path, .. } => {
                format!("fix {}, then run the same command again; nothing was changed", path.display())
            }
            Self::NoAddress(_) => {
                "fix networks.controlPlane.cidr in /etc/metalform/bootstrap.yaml".to_owned()
            }
            Self::Nodes(_) => {
                "this machine has several addresses on the control plane, and its Node records which one hosts use: run it again once the API answers"
                    .to_owned()
            }
            Self::Hostname(_) => "set a valid hostname: hostnamectl set-hostname NAME".to_owned(),
            Self::OtherMachine { .. } => {
                "run it on that node, or fix ca.node in /etc/metalform/bootstrap.yaml".to_owned()
            }
            Self::Renamed(error) => return error.hints(),
            Self::Bundles(ClusterBundlesError::Manifest { error: BundleManifestError::Signature(_), .. }) => {
                "use a bundle that is signed with bundleKey in /etc/metalform/bootstrap.yaml; nothing was changed"
                    .to_owned()
            }
            Self::Bundles(ClusterBundlesError::Manifest {
                directory,
                error: BundleManifestError::Read { source, .. },
            }) if source.kind() == std::io::ErrorKind::NotADirectory => format!(
                "{} is a file, as the ISO images of MetalK8s are; specify the directory of a bundle in /etc/metalform/bootstrap.yaml",
                directory.display()
            ),
            Self::Bundles(ClusterBundlesError::Manifest { directory, .. }) => format!(
                "build it with `metalform bundle build -o {}` on a machine with network access",
                directory.display()
            ),
            Self::Bundles(_) => "fix bundles in /etc/metalform/bootstrap.yaml".to_owned(),
            Self::PackageIndex { directory, .. } => {
                format!("run `metalform bundle verify {}`", directory.display())
            }
            Self::Trust(TrustError::OtherCluster { .. }) => {
                "use another machine; or run `metalform remove-node NAME` on the bootstrap node of that cluster, run `kubeadm reset` here, or reinstall this machine; nothing was changed"
                    .to_owned()
            }
            Self::Trust(_) => {
                "restore the files, then run the same command again; nothing was changed".to_owned()
            }
            Self::States(error) => return error.hints(),
            Self::Ssh(error) => return error.hints(),
            Self::Local(_) | Self::Facts(_) | Self::Executable(_) => return Vec::new(),
        };
        vec![hint]
    }
}

/// Reads the operator's configuration. Its warnings are logged.
///
/// # Errors
/// When it is missing or wrong.
pub fn configuration(layout: &Layout) -> Result<BootstrapConfiguration, WorkspaceError> {
    let path = layout.configuration();
    let file = path.display().to_string();
    let text = file_text::read(&path)?;
    let configuration = BootstrapConfiguration::parse(&Document { file: &file, text: &text })
        .map_err(|problems| WorkspaceError::Configuration { path, problems })?;
    for warning in &configuration.warnings {
        tracing::warn!("{warning}");
    }
    Ok(configuration)
}

async fn own_facts() -> Result<Facts, WorkspaceError> {
    let nonce = Nonce::new(rand::random());
    let output = LocalTransport.run(&facts::program(&nonce), &mut |_| {}).await?;
    Ok(facts::parse(&nonce, &output)?)
}

/// Opens the workspace of this machine: reads and checks everything that operations need.
///
/// # Errors
/// The first part that is missing or wrong.
pub async fn open(request: WorkspaceRequest) -> Result<Arc<Workspace>, WorkspaceError> {
    if !rustix::process::geteuid().is_root() {
        return Err(WorkspaceError::NotRoot);
    }
    let layout = request.layout;
    let configuration = configuration(&layout)?;
    let facts = own_facts().await?;
    let name: HostName = facts.hostname.parse().map_err(WorkspaceError::Hostname)?;
    if let Some(expected) = configuration.ca_node.as_ref().filter(|expected| **expected != name) {
        return Err(WorkspaceError::OtherMachine { found: name, expected: expected.clone() });
    }
    let networks = &configuration.networks.control_plane;
    let address = own_address(&layout, &name, &addresses_in(&facts, networks))
        .await?
        .ok_or_else(|| WorkspaceError::NoAddress(networks.clone()))?;
    let bundles = ClusterBundles::read(&configuration.bundles, configuration.bundle_key.as_ref())?;
    let subject = Subject { name: name.clone(), address, indexes: indexes(&bundles)? };
    unchanged_name::check(&layout, &subject.name)?;
    // Without its keys a cluster looks like something else: that comes before anything is decided.
    trust::check(&layout, &subject)?;
    let metalform = std::env::current_exe().map_err(WorkspaceError::Executable)?;
    let pool = request.origin.ssh.pool(&request.ssh_environment, request.clock, Some(name)).await?;
    Ok(Arc::new(Workspace {
        layout,
        configuration,
        bundles,
        library: states::library(request.origin.tree.as_deref())?,
        subject,
        record: None,
        metalform,
        metalform_digest: ProgramDigest::default(),
        metalform_needs: ProgramNeeds::of_running().map_err(WorkspaceError::Executable)?,
        pool: Arc::new(pool),
        now: request.clock,
        report: request.events,
    }))
}

/// The repository indexes of the bundles, unsigned.
fn indexes(bundles: &ClusterBundles) -> Result<Vec<RepositoryIndex>, WorkspaceError> {
    let of_bundle = |bundle: &Arc<BundleDirectory>| {
        let bundle = bundle.clone();
        bundle.manifest.indexes().into_iter().map(move |index| unsigned(&bundle, index))
    };
    bundles.all().flat_map(of_bundle).collect()
}

fn unsigned(bundle: &BundleDirectory, index: IndexPaths) -> Result<RepositoryIndex, WorkspaceError> {
    let path = bundle.path.join(&index.unsigned);
    let signed_path = format!("{}/{}", bundle.served_path(), index.signed);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(RepositoryIndex { signed_path, text, signature: index.signature }),
        Err(error) => Err(WorkspaceError::PackageIndex { directory: bundle.path.clone(), path, error }),
    }
}

/// The goal of an operation on one node.
pub fn goal(workspace: &Workspace, spec: &NodeSpec) -> NodeGoal {
    NodeGoal {
        name: spec.name.clone(),
        roles: spec.roles.clone(),
        first: spec.name == workspace.subject.name,
        networks: workspace.configuration.networks.clone(),
        present_networks: present_networks(&workspace.layout),
        recorded_address: spec.control_plane_ip,
        recorded_workload_address: spec.workload_plane_ip,
        platforms: workspace.bundle_of(spec).manifest.platforms.clone(),
        versions: workspace.bundles.first().manifest.versions.clone(),
        authority: std::fs::read_to_string(workspace.layout.pki().join("ca.crt")).ok(),
        max_pods: workspace.configuration.kubernetes.max_pods,
        program: workspace.metalform_needs.clone(),
        replace_member: false,
        replace_machine: false,
        beside: Arc::default(),
        foreseen: None,
        leaves: false,
    }
}

/// The networks of the cluster, where this machine has its API server and its controller manager.
pub(super) fn present_networks(layout: &Layout) -> PresentNetworks {
    let manifest = |pod: &str| std::fs::read_to_string(layout.static_pod(pod)).ok();
    let (api_server, controller_manager) = (manifest("kube-apiserver"), manifest("kube-controller-manager"));
    PresentNetworks::of(api_server.as_deref(), controller_manager.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bundle_that_is_not_there_is_to_be_built() {
        let directory = tempfile::tempdir().unwrap();
        let hints = |name: &str| {
            let error = ClusterBundles::read(&[directory.path().join(name)], None).unwrap_err();
            WorkspaceError::from(error).hints()
        };
        let path = |name: &str| directory.path().join(name).display().to_string();
        std::fs::write(directory.path().join("metalk8s.iso"), "ISO").unwrap();
        let file = format!(
            "{} is a file, as the ISO images of MetalK8s are; specify the directory of a bundle in /etc/metalform/bootstrap.yaml",
            path("metalk8s.iso")
        );
        assert_eq!(hints("metalk8s.iso"), [file]);
        let build = format!(
            "build it with `metalform bundle build -o {}` on a machine with network access",
            path("absent")
        );
        assert_eq!(hints("absent"), [build]);
    }
}
