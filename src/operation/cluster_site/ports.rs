//! Everything outside this process that the site reaches.

use std::path::PathBuf;
use std::sync::Arc;

use kube::Client;

use super::Workspace;
use super::bootstrap::REGISTRY_WRITER;
use super::network::{ImageRegistry, LocalRegistry, Network, TcpNetwork};
use crate::engine::share::Share;
use crate::etcd::client::EtcdConnector;
use crate::model::node::NodeSpec;
use crate::operation::host_access::{EngineHost, HostAccess};
use crate::transport::pool::ConnectionPool;

/// The ports of one site.
#[derive(Clone)]
pub struct Ports {
    /// The host of the node.
    pub host: Arc<dyn HostAccess>,
    /// The hosts of other nodes.
    pub peers: Arc<dyn PeerHosts>,
    /// The API.
    pub api: ApiPort,
    /// etcd.
    pub etcd: EtcdPort,
    /// Plain TCP and HTTP.
    pub network: Arc<dyn Network>,
    /// The registry.
    pub registry: Arc<dyn ImageRegistry>,
}

/// Reaches the hosts of other nodes.
pub trait PeerHosts: Send + Sync {
    /// The host of this node.
    fn host(&self, node: &NodeSpec) -> Arc<dyn HostAccess>;
}

/// How the API is reached.
#[derive(Clone)]
pub enum ApiPort {
    /// By a kubeconfig, which need not exist before the first look at the API.
    Kubeconfig(PathBuf),
    /// By this client.
    Client(Client),
}

/// How etcd is reached at the endpoints of each look.
#[derive(Clone)]
pub enum EtcdPort {
    /// By the credentials of the layout, which need not exist before the first look at etcd.
    Credentials,
    /// By these connections.
    Connector(Arc<dyn EtcdConnector>),
}

/// Hosts over the connections of a run.
pub struct PooledHosts {
    /// Every connection of the run.
    pub pool: Arc<ConnectionPool>,
    /// What the hosts of a run share.
    pub share: Share,
}

impl PeerHosts for PooledHosts {
    fn host(&self, node: &NodeSpec) -> Arc<dyn HostAccess> {
        let transport = self.pool.transport(&node.name, &node.ssh);
        Arc::new(EngineHost::new(node.name.clone(), transport, self.share.clone()))
    }
}

impl Ports {
    /// Those of a command: hosts over SSH, the API by the administrator's kubeconfig.
    pub fn of_command(workspace: &Workspace, node: &NodeSpec, share: Share) -> Self {
        let api = ApiPort::Kubeconfig(workspace.layout.admin_conf());
        let peers = PooledHosts { pool: workspace.pool.clone(), share };
        Self {
            host: peers.host(node),
            peers: Arc::new(peers),
            api,
            etcd: EtcdPort::Credentials,
            network: Arc::new(TcpNetwork),
            registry: Arc::new(LocalRegistry(REGISTRY_WRITER.into())),
        }
    }
}
