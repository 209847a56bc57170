//! How a job reaches its host, and the cluster.

use std::sync::Arc;

use kube::Client;

use crate::engine::cancel::Cancel;
use crate::engine::fenced_transport::FencedTransport;
use crate::engine::share::{Share, UPLOADS};
use crate::model::node::NodeSpec;
use crate::operation::cluster_site::{ApiPort, Ports, Workspace};
use crate::operation::host_access::EngineHost;

/// How hosts of the pool are reached.
pub trait PoolPorts: Send + Sync {
    /// The ports of a site on this host. Every program on it has this token; `None` for one that changes nothing.
    fn ports(&self, node: &NodeSpec, token: Option<u64>, cancel: &Cancel) -> Ports;
}

/// Over SSH.
pub struct SshPorts {
    /// The bootstrap node.
    pub workspace: Arc<Workspace>,
    /// The API.
    pub client: Client,
}

impl PoolPorts for SshPorts {
    fn ports(&self, node: &NodeSpec, token: Option<u64>, cancel: &Cancel) -> Ports {
        let share = Share::new(cancel.clone(), UPLOADS);
        let ports = Ports::of_command(&self.workspace, node, share.clone());
        let open = self.workspace.pool.transport(&node.name, &node.ssh);
        let transport = match token {
            Some(token) => Arc::new(FencedTransport::new(open, node.name.to_string(), token)),
            None => open,
        };
        let host = Arc::new(EngineHost::new(node.name.clone(), transport, share));
        Ports { host, api: ApiPort::Client(self.client.clone()), ..ports }
    }
}
