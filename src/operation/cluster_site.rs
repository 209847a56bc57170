//! The real site: a host over its transport, etcd and the API from this machine, the bootstrap node's files.

mod api;
mod bootstrap;
mod host;
mod membership;
mod reach;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use kube::Client;

use super::goal::Goal;
use super::phase::{Action, Look};
use super::site::{Done, Site, Trouble};
use super::world::{Seen, World};
use crate::bundle::manifest::Bundle;
use crate::engine::nonce::Nonce;
use crate::engine::plan::Plan;
use crate::kube_api::client;
use crate::kube_api::lease::MembershipLease;
use crate::kube_api::tokens::BootstrapToken;
use crate::model::bootstrap_configuration::BootstrapConfiguration;
use crate::model::event::Event;
use crate::model::node::NodeSpec;
use crate::state::Library;
use crate::transport::Transport;
use crate::transport::pool::ConnectionPool;
use crate::workspace::layout::Layout;
use crate::workspace::trust::{Subject, Trust};
pub use bootstrap::REGISTRY;

/// What all sites of one run share.
pub struct Setting {
    /// Where things lie on this machine.
    pub layout: Layout,
    /// The operator's file.
    pub configuration: BootstrapConfiguration,
    /// What the cluster is made of.
    pub bundle: Bundle,
    /// Where it lies.
    pub bundle_directory: PathBuf,
    /// The states.
    pub library: Library,
    /// The bootstrap node's name and address.
    pub subject: Subject,
    /// This binary.
    pub metalform: PathBuf,
    /// Every SSH connection of the run.
    pub pool: Arc<ConnectionPool>,
    /// The clock.
    pub now: fn() -> Timestamp,
    /// Who is told what happens.
    pub report: Arc<dyn Fn(Event) + Send + Sync>,
}

/// One host and its cluster.
pub struct ClusterSite {
    setting: Arc<Setting>,
    goal: Goal,
    spec: NodeSpec,
    transport: Arc<dyn Transport>,
    token: BootstrapToken,
    trust: Option<Trust>,
    client: Option<Client>,
    lease: Option<MembershipLease>,
    plan: Option<(super::layer::Layer, Plan)>,
}

impl ClusterSite {
    /// A site for one node.
    pub fn new(setting: Arc<Setting>, goal: Goal, spec: NodeSpec) -> Self {
        let transport = setting.pool.transport(&spec.name, &spec.ssh);
        let token = BootstrapToken::from_random(rand::random());
        Self { setting, goal, spec, transport, token, trust: None, client: None, lease: None, plan: None }
    }

    /// The API, by the administrator's kubeconfig.
    async fn client(&mut self) -> Result<Client, Trouble> {
        if let Some(client) = &self.client {
            return Ok(client.clone());
        }
        let client = client::connect(&self.setting.layout.admin_conf()).await?;
        self.client = Some(client.clone());
        Ok(client)
    }

    /// The authorities, read once.
    fn trust(&mut self) -> Result<&Trust, Trouble> {
        let read = match self.trust.take() {
            Some(trust) => trust,
            None => crate::workspace::trust::load(&self.setting.layout)?,
        };
        Ok(self.trust.insert(read))
    }

    fn nonce() -> Nonce {
        Nonce::new(rand::random())
    }
}

#[async_trait]
impl Site for ClusterSite {
    async fn look(&mut self, look: &Look, world: &World) -> Result<Seen, Trouble> {
        match look {
            Look::Facts => self.facts().await,
            Look::Survey => self.survey().await,
            Look::Plan(layer) => self.make_plan(layer, world).await,
            Look::Node => self.node().await,
            Look::Peers => self.peers().await,
            Look::Pods => self.pods().await,
            Look::Api => self.api().await,
            Look::Membership => self.membership(world).await,
            Look::Trust => self.missing_trust(),
            Look::PackageService => self.package_service().await,
            Look::Images => self.missing_images().await,
            Look::ClusterObjects => self.missing_objects(world).await,
            Look::Proxies => self.proxies(world).await,
            Look::JoinTokens => self.join_tokens().await,
            Look::Reach => self.reach().await,
        }
    }

    async fn act(&mut self, action: &Action, world: &World) -> Result<Done, Trouble> {
        match action {
            Action::Apply(layer) => self.apply(layer, world).await,
            Action::SetAsideMemberData => self.set_aside_member_data().await,
            Action::RestartKubelet => self.restart_kubelet().await,
            Action::CreateJoinToken => self.create_join_token(world).await,
            Action::DeleteJoinToken => self.delete_join_token().await,
            Action::Annotate(annotations) => self.annotate(annotations).await,
            Action::RegisterNode => self.register_node().await,
            Action::ApplyClusterObjects => self.apply_cluster_objects(world).await,
            Action::TakeLease => self.take_lease().await,
            Action::ReleaseLease => self.release_lease().await,
            Action::ChangeMembership(change) => self.change_membership(change, world).await,
            Action::CreateTrust => self.create_trust(),
            Action::LoadImages => self.load_images().await,
            Action::UpdateProxies(nodes) => self.update_proxies(nodes, world).await,
            Action::StartReachabilityPod => self.start_reachability_pod(world).await,
            Action::DeleteReachabilityPod => self.delete_reachability_pod().await,
        }
    }
}
