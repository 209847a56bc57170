//! The real site: a host, etcd and the API as seen from the bootstrap node, and the bootstrap node's files.

mod api;
mod begin_cluster;
mod bootstrap;
mod causes;
mod change_turn;
mod cluster_keys;
mod drain;
mod host;
mod lease;
mod membership;
mod network;
mod peers;
mod ports;
mod program_digest;
mod reachability;
mod removal;
mod rendering;
mod reset;
mod run_machines;
mod trust_source;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use jiff::Timestamp;
use kube::Client;
use tokio::sync::Mutex;

use super::effect::{Action, Look, Observation, Returned};
use super::goal::NodeGoal;
use super::site::{EffectError, Site};
use crate::bundle::cluster_bundles::{BundleDirectory, ClusterBundles};
use crate::bundle::program_needs::ProgramNeeds;
use crate::kube_api::client;
use crate::kube_api::lease::HeldLease;
use crate::kube_api::tokens::BootstrapToken;
use crate::model::bootstrap_configuration::BootstrapConfiguration;
use crate::model::event::Event;
use crate::model::node::NodeSpec;
use crate::state::Library;
use crate::transport::pool::ConnectionPool;
use crate::workspace::cluster_record::ClusterRecord;
use crate::workspace::layout::Layout;
use crate::workspace::trust::Subject;
pub use bootstrap::{OBJECTS, REGISTRY, REGISTRY_WRITER};
pub use network::{ImageRegistry, LocalRegistry, Network, TcpNetwork};
pub use ports::{ApiPort, EtcdPort, PeerHosts, PooledHosts, Ports};
pub use program_digest::ProgramDigest;
pub use run_machines::RunMachines;
use trust_source::TrustSource;

/// What all sites of one run share.
pub struct Workspace {
    /// Paths on the bootstrap node.
    pub layout: Layout,
    /// The operator's file.
    pub configuration: BootstrapConfiguration,
    /// What the cluster is made of.
    pub bundles: ClusterBundles,
    /// The states.
    pub library: Library,
    /// The bootstrap node's name and address.
    pub subject: Subject,
    /// On another master: what stands for the keys of the cluster. Nothing can be issued there.
    pub record: Option<ClusterRecord>,
    /// Path of this binary.
    pub metalform: PathBuf,
    /// Its digest, once it was computed.
    pub metalform_digest: ProgramDigest,
    /// What a host needs to run it.
    pub metalform_needs: ProgramNeeds,
    /// Every connection of the run.
    pub pool: Arc<ConnectionPool>,
    /// The clock.
    pub now: fn() -> Timestamp,
    /// Receives what happens on hosts.
    pub report: Arc<dyn Fn(Event) + Send + Sync>,
}

impl Workspace {
    /// What a node is made of: the bundle with the version that it names, else the first one. Where a node is deployed, a
    /// version that no bundle has was refused before; other operations go on without its bundle.
    pub fn bundle_of(&self, spec: &NodeSpec) -> &Arc<BundleDirectory> {
        let named = spec.version.as_deref().and_then(|version| self.bundles.of_version(version));
        named.unwrap_or_else(|| self.bundles.first())
    }
}

/// One host and its cluster.
pub struct ClusterSite {
    workspace: Arc<Workspace>,
    goal: NodeGoal,
    spec: NodeSpec,
    /// What the node is made of.
    bundle: Arc<BundleDirectory>,
    ports: Ports,
    machines: Arc<RunMachines>,
    token: BootstrapToken,
    trust: TrustSource,
    client: Mutex<Option<Client>>,
    lease: Mutex<Option<HeldLease>>,
    /// For a master that stands by, once it was written.
    record: OnceLock<String>,
    /// Whether actions are refused, and what they would create is generated in memory.
    dry: bool,
}

impl ClusterSite {
    /// A site for one node, which reaches everything outside this process through `ports`.
    pub fn new(workspace: Arc<Workspace>, goal: NodeGoal, spec: NodeSpec, ports: Ports) -> Self {
        Self {
            token: BootstrapToken::from_random(rand::random()),
            trust: TrustSource::new(),
            client: Mutex::new(None),
            lease: Mutex::new(None),
            record: OnceLock::new(),
            dry: false,
            bundle: workspace.bundle_of(&spec).clone(),
            workspace,
            goal,
            spec,
            ports,
            machines: Arc::default(),
        }
    }

    /// As one of the sites of a command that works on several hosts: no two of them may be the same machine.
    #[must_use]
    pub fn among(self, machines: Arc<RunMachines>) -> Self {
        Self { machines, ..self }
    }

    /// A site for a dry run: it performs no action, and CAs that do not exist are generated in memory. The join token, which is
    /// never created, is always the same: two dry runs can be compared.
    #[must_use]
    pub fn dry(self) -> Self {
        Self { dry: true, token: BootstrapToken::from_random([0; 22]), ..self }
    }

    /// A client of the API.
    async fn client(&self) -> Result<Client, EffectError> {
        let path = match &self.ports.api {
            ApiPort::Client(client) => return Ok(client.clone()),
            ApiPort::Kubeconfig(path) => path,
        };
        let mut known = self.client.lock().await;
        if let Some(client) = &*known {
            return Ok(client.clone());
        }
        Ok(known.insert(client::connect_without_retry(path).await?).clone())
    }
}

#[async_trait]
impl Site for ClusterSite {
    async fn look(&self, look: &Look) -> Result<Observation, EffectError> {
        match look {
            Look::Facts => {
                let facts = self.ports.host.facts().await?;
                self.machines.record(&self.goal.name, &facts.machine_id);
                Ok(Observation::Facts(facts, (self.workspace.now)().as_second()))
            }
            Look::Survey => self.survey().await,
            Look::Plan(layer, inputs) => self.plan(layer, inputs).await,
            Look::Unit(name) => self.unit(name).await,
            Look::Container(name) => self.container(name).await,
            Look::HostDifferences(inputs, keep) => self.host_differences(inputs, *keep).await,
            Look::Node => self.node().await,
            Look::Peers => self.peers().await,
            Look::Pods(expected) => self.pods(expected).await,
            Look::PodsToDrain => self.pods_to_drain().await,
            Look::ApiServers(addresses) => self.api_servers(addresses).await,
            Look::JoinTokens => self.join_tokens().await,
            Look::Reachability => self.reachability().await,
            Look::PodGateway => self.pod_gateway().await,
            Look::Membership(endpoints) => self.membership(endpoints).await,
            Look::OwnMember => Ok(self.own_member().await),
            Look::Lease => self.lease_view().await,
            Look::Api => self.api().await,
            Look::Proxy(node, nodes) => self.proxy(node, nodes).await,
            Look::EtcdServers(node) => self.etcd_servers(node).await,
            Look::Trust => self.missing_trust(),
            Look::NewClusterMark => Ok(self.new_cluster_mark()),
            Look::PackageService => Ok(self.package_service().await),
            Look::Registry => Ok(self.registry().await),
            Look::Images => self.missing_images().await,
            Look::Objects(inputs) => self.missing_objects(inputs).await,
        }
    }

    async fn act(&self, action: &Action) -> Result<Returned, EffectError> {
        if self.dry {
            return Err(EffectError::Impossible { what: format!("in a dry run: {}", action.sentence()) });
        }
        match action {
            Action::Apply(layer, plan) => self.apply(layer, plan).await,
            Action::SetAsideMemberData => self.set_aside_member_data().await,
            Action::RemoveMemberManifest => self.remove_member_manifest().await,
            Action::BeginCluster(address) => self.begin_cluster(*address).await,
            Action::RestartKubelet => self.restart_kubelet().await,
            Action::CreateJoinToken => self.create_join_token().await,
            Action::DeleteJoinTokens => self.delete_join_tokens().await,
            Action::SetCapacity(capacity) => self.set_capacity(*capacity).await,
            Action::RecordAddresses { control_plane, workload_plane, status } => {
                self.record_addresses(*control_plane, *workload_plane, status).await
            }
            Action::RemoveUninitializedTaint => self.remove_uninitialized_taint().await,
            Action::MarkApiServerReady => self.mark_api_server_ready().await,
            Action::RegisterNode(address) => self.register_node(*address).await,
            Action::StartReachabilityPod => self.start_reachability_pod().await,
            Action::DeleteReachabilityPod => self.delete_reachability_pod().await,
            Action::TakeLease => self.take_lease().await,
            Action::ReleaseLease => self.release_lease().await,
            Action::ChangeMembership(change, observed) => self.change_membership(change, observed).await,
            Action::WithdrawLearner(learner) => self.withdraw_learner(learner).await,
            Action::MoveLeader(to, observed) => self.move_leader(*to, observed).await,
            Action::Cordon => self.cordon().await,
            Action::Uncordon => self.uncordon().await,
            Action::EvictPods(pods) => self.evict_pods(pods).await,
            Action::WithdrawApiServer => self.withdraw_api_server().await,
            Action::StopControlPlane => self.stop_control_plane().await,
            Action::StopNode => self.stop_node().await,
            Action::ClearHost(inputs, keep) => self.clear_host(inputs, *keep).await,
            Action::ForgetHost => self.forget_host().await,
            Action::DeleteNode => self.delete_node().await,
            Action::UpdateProxy(node, plan) => self.update_proxy(node, plan).await,
            Action::CreateTrust(files) => self.create_trust(files),
            Action::RemoveNewClusterMark => self.remove_new_cluster_mark(),
            Action::LoadImages(_) => self.load_images().await,
            Action::ApplyObjects(_, inputs) => self.apply_objects(inputs).await,
        }
    }
}
