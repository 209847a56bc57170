//! The cluster besides this node: its API, and the proxies of the other nodes.

use std::collections::BTreeMap;

use crate::operation::effect::{Action, LookKey, Observation};
use crate::operation::layer::Layer;
use crate::operation::observed::etcd_servers::EtcdServers;
use crate::operation::observed::proxy::ProxyView;

/// What was observed of the cluster.
#[derive(Debug, Clone, Default)]
pub struct ClusterPart {
    /// Why the API server is not ready, or `None` when it is.
    pub api: Option<Option<String>>,
    /// Why each other API server is not ready, or `None` when it is, by node name.
    pub api_servers: Option<BTreeMap<String, Option<String>>>,
    /// The proxies of other nodes, by node name.
    pub proxies: BTreeMap<String, ProxyView>,
    /// The members of etcd that other API servers use, by node name.
    pub etcd_servers: BTreeMap<String, EtcdServers>,
}

impl ClusterPart {
    /// Takes in what is this part's.
    pub fn put(&mut self, observation: &Observation) {
        match observation {
            Observation::Api(api) => self.api = Some(api.clone()),
            Observation::ApiServers(servers) => self.api_servers = Some(servers.clone()),
            Observation::Proxy(node, proxy) => {
                self.proxies.insert(node.clone(), proxy.clone());
            }
            Observation::EtcdServers(node, servers) => {
                self.etcd_servers.insert(node.clone(), servers.clone());
            }
            _ => {}
        }
    }

    /// Forgets what is this part's.
    pub fn forget(&mut self, key: &LookKey) {
        match key {
            LookKey::Api => self.api = None,
            LookKey::ApiServers => self.api_servers = None,
            LookKey::Proxy(node) => {
                self.proxies.remove(node);
            }
            LookKey::Proxies => self.proxies.clear(),
            LookKey::EtcdServers(node) => {
                self.etcd_servers.remove(node);
            }
            LookKey::AllEtcdServers => self.etcd_servers.clear(),
            _ => {}
        }
    }

    /// Takes an action as done.
    pub fn predict(&mut self, action: &Action) {
        match action {
            Action::Apply(Layer::First | Layer::ControlPlane, _) => self.api = Some(None),
            Action::UpdateProxy(node, _) => {
                self.proxies.insert(node.clone(), ProxyView::Current);
            }
            _ => {}
        }
    }
}
