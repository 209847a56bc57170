//! What the other nodes know of the API servers, in their proxies, and of the mirrors. Nothing else is touched there.
//! What their API servers know of etcd is only read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::ClusterSite;
use crate::engine::host::HostError;
use crate::kube_api::client::{ApiCall, ApiError};
use crate::kube_api::nodes;
use crate::model::name::HostName;
use crate::model::node::NodeSpec;
use crate::operation::effect::{Observation, Returned};
use crate::operation::goal::NodeGoal;
use crate::operation::host_access::HostPlan;
use crate::operation::inputs::NodeInputs;
use crate::operation::layer::Layer;
use crate::operation::observed::etcd_servers::EtcdServers;
use crate::operation::observed::layer_plan::LayerPlan;
use crate::operation::observed::node::Peer;
use crate::operation::observed::proxy::ProxyView;
use crate::operation::site::EffectError;

/// The resource that has the API servers.
const PROXY: &str = "template:/etc/haproxy/haproxy.cfg";

impl ClusterSite {
    async fn peer_spec(&self, node: &str) -> Result<NodeSpec, EffectError> {
        let invalid = |fault: String| EffectError::States { faults: vec![format!("node {node}: {fault}")] };
        let name: HostName =
            node.parse().map_err(|error: crate::model::name::NameError| invalid(error.to_string()))?;
        let found = nodes::get(&self.client().await?, &name).await?.ok_or_else(|| {
            let call = ApiCall { verb: "get", object: format!("node/{name}") };
            EffectError::Api(ApiError::NotFound { call })
        })?;
        NodeSpec::from_node(&found).map_err(|problems| invalid(problems.to_string()))
    }

    /// Plans the proxy of another node from that node's own facts.
    pub(super) async fn proxy(
        &self,
        node: &str,
        nodes: &Arc<BTreeMap<String, Peer>>,
    ) -> Result<Observation, EffectError> {
        let peer = |source: HostError| EffectError::Peer { node: node.to_owned(), source: Box::new(source) };
        let spec = self.peer_spec(node).await?;
        let host = self.ports.peers.host(&spec);
        let facts = host.facts().await.map_err(peer)?;
        let goal = NodeGoal {
            name: spec.name.clone(),
            roles: spec.roles.iter().copied().collect::<BTreeSet<_>>(),
            first: spec.name == self.workspace.subject.name,
            recorded_address: spec.control_plane_ip,
            recorded_workload_address: spec.workload_plane_ip,
            ..self.goal.clone()
        };
        let view = match NodeInputs::of_peer(goal, facts, nodes) {
            // It was deleted meanwhile.
            None => ProxyView::Current,
            // A proxy without a server would cut its node off for good: nothing else updates it.
            Some(inputs) if !inputs.has_api_servers() => {
                let reason = "no Node is recorded to have an API server".to_owned();
                let refusals = vec![(PROXY.to_owned(), reason)];
                return Err(peer(HostError::Refused { refusals }));
            }
            Some(inputs) => {
                let desired = self.desired(&Layer::Proxy, &inputs, &spec)?;
                match LayerPlan::of(host.plan(desired, &inputs.facts).await.map_err(peer)?) {
                    LayerPlan::Unchanged(_) => ProxyView::Current,
                    LayerPlan::Differs(plan) => ProxyView::Stale(plan),
                    LayerPlan::Refused(refusals) => return Err(peer(HostError::Refused { refusals })),
                }
            }
        };
        Ok(Observation::Proxy(node.to_owned(), view))
    }

    /// The members of etcd that the API server of another node uses.
    pub(super) async fn etcd_servers(&self, node: &str) -> Result<Observation, EffectError> {
        let spec = self.peer_spec(node).await?;
        let probes = BTreeSet::from([EtcdServers::probe()]);
        let observed = self.ports.peers.host(&spec).observe(&probes).await;
        let observed = observed
            .map_err(|source| EffectError::Peer { node: node.to_owned(), source: Box::new(source) })?;
        Ok(Observation::EtcdServers(node.to_owned(), EtcdServers::read(&observed)))
    }

    /// Carries out the plan. That nothing differs now is observed by another look, with the nodes as they are then.
    pub(super) async fn update_proxy(&self, node: &str, plan: &HostPlan) -> Result<Returned, EffectError> {
        let spec = self.peer_spec(node).await?;
        let host = self.ports.peers.host(&spec);
        let (changed, _) =
            self.carry_out(&spec.name, host.as_ref(), plan).await.map_err(|error| match error {
                EffectError::Host(source) => {
                    EffectError::Peer { node: node.to_owned(), source: Box::new(source) }
                }
                other => other,
            })?;
        Ok(Returned { changed, observed: Vec::new() })
    }
}
