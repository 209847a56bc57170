//! The Node objects and pods of the cluster.

use std::collections::BTreeMap;
use std::net::IpAddr;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{Node, NodeAddress, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::api::{Api, PostParams};

use super::ClusterSite;
use crate::kube_api::FIELD_MANAGER;
use crate::kube_api::client::ApiError;
use crate::kube_api::node_addresses::address_annotations;
use crate::kube_api::nodes::{self, Annotations, Capacity};
use crate::kube_api::pods::ExpectedPod;
use crate::kube_api::{pods, tokens};
use crate::model::api_contract::{
    API_SERVER, CONTROL_PLANE_IP, SSH_HOST, UNINITIALIZED_TAINT, WORKLOAD_PLANE_IP,
};
use crate::model::error_chain::error_chain;
use crate::model::node::{NodeManifest, persistent_taints};
use crate::operation::effect::{Observation, Returned};
use crate::operation::observed::node::{NodeView, Peer, RunState};
use crate::operation::site::EffectError;
use crate::resource::contract::probe::{Answer, Observed, Probe};

/// How long a join token is valid: a kubelet that has not used it by then gets another one from the next run.
const TOKEN_LIFE: SignedDuration = SignedDuration::from_mins(10);

impl ClusterSite {
    pub(super) async fn node(&self) -> Result<Observation, EffectError> {
        let client = self.client().await?;
        Ok(Observation::Node(nodes::get(&client, &self.goal.name).await?.as_ref().map(view)))
    }

    pub(super) async fn peers(&self) -> Result<Observation, EffectError> {
        let client = self.client().await?;
        let others =
            nodes::list(&client).await?.into_iter().filter(|node| node.name_any() != self.goal.name.as_str());
        let mut peers: BTreeMap<String, Peer> = others.map(|node| (node.name_any(), peer(&node))).collect();
        let earlier = self.machines.earlier(&self.goal.name);
        if let Some(peer) = earlier.and_then(|name| peers.get_mut(name.as_str())) {
            peer.same_machine = true;
        }
        for (name, peer) in &mut peers {
            peer.run = self.machines.run(name);
        }
        Ok(Observation::Peers(peers))
    }

    pub(super) async fn pods(&self, expected: &[ExpectedPod]) -> Result<Observation, EffectError> {
        let client = self.client().await?;
        let probes = expected.iter().filter_map(manifest_probe).collect();
        let manifests = self.ports.host.observe(&probes).await?;
        let found = pods::of_node(&client, &self.goal.name).await?;
        let missing = pods::missing(&found, &self.goal.name, expected, &digests(expected, &manifests));
        Ok(Observation::Pods(expected.to_vec(), missing))
    }

    /// Whether it is ready; that it does not answer is an observation too.
    pub(super) async fn api(&self) -> Result<Observation, EffectError> {
        let client = match self.client().await {
            Ok(client) => client,
            // In a dry run of a new cluster there is no kubeconfig yet.
            Err(error) if self.dry => return Ok(Observation::Api(Some(error_chain(&error)))),
            Err(error) => return Err(error),
        };
        let asked = client
            .request_text(axum::http::Request::get("/readyz").body(Vec::new()).unwrap_or_default())
            .await;
        Ok(Observation::Api(asked.err().map(|error| error_chain(&error))))
    }

    /// Leaves a Node alone that has a capacity already.
    pub(super) async fn set_capacity(&self, capacity: Capacity) -> Result<Returned, EffectError> {
        nodes::set_capacity(&self.client().await?, &self.goal.name, capacity).await?;
        Ok(Returned::default())
    }

    pub(super) async fn create_join_token(&self) -> Result<Returned, EffectError> {
        let client = self.client().await?;
        let expires = (self.workspace.now)() + TOKEN_LIFE;
        match tokens::create(&client, &self.token, &self.goal.name, expires).await {
            // Our own, of an attempt whose answer was lost.
            Ok(()) | Err(tokens::TokenError::Api(ApiError::Conflict { .. })) => Ok(Returned::default()),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) async fn delete_join_tokens(&self) -> Result<Returned, EffectError> {
        let client = self.client().await?;
        for id in tokens::ids(&client, &self.goal.name).await? {
            tokens::delete(&client, &id).await?;
        }
        Ok(Returned::default())
    }

    pub(super) async fn join_tokens(&self) -> Result<Observation, EffectError> {
        let client = self.client().await?;
        Ok(Observation::JoinTokens(tokens::ids(&client, &self.goal.name).await?.len()))
    }

    pub(super) async fn record_addresses(
        &self,
        control_plane: IpAddr,
        workload_plane: IpAddr,
        status: &[NodeAddress],
    ) -> Result<Returned, EffectError> {
        let annotated = self.annotate(address_annotations(control_plane, workload_plane, status)).await?;
        let reported = nodes::set_addresses(&self.client().await?, &self.goal.name, status).await?;
        Ok(Returned { changed: annotated.changed.max(usize::from(reported)), observed: Vec::new() })
    }

    pub(super) async fn remove_uninitialized_taint(&self) -> Result<Returned, EffectError> {
        let removed =
            nodes::remove_taint(&self.client().await?, &self.goal.name, UNINITIALIZED_TAINT).await?;
        Ok(Returned { changed: usize::from(removed), observed: Vec::new() })
    }

    pub(super) async fn mark_api_server_ready(&self) -> Result<Returned, EffectError> {
        self.annotate([(API_SERVER.to_owned(), "ready".to_owned())]).await
    }

    pub(super) async fn annotate(
        &self,
        annotations: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Returned, EffectError> {
        self.set_annotations(annotations.into_iter().map(|(key, value)| (key, Some(value))).collect()).await
    }

    pub(super) async fn set_annotations(&self, annotations: Annotations) -> Result<Returned, EffectError> {
        let client = self.client().await?;
        let changed = nodes::annotate(&client, &self.goal.name, &annotations).await?;
        Ok(Returned { changed: usize::from(changed), observed: Vec::new() })
    }

    /// The bootstrap node's own object, as an operator would have written it. One of its kubelet is completed.
    pub(super) async fn register_node(&self, address: IpAddr) -> Result<Returned, EffectError> {
        let client = self.client().await?;
        let node = Node {
            metadata: ObjectMeta {
                name: Some(self.goal.name.to_string()),
                labels: Some(self.spec.labels.clone()),
                annotations: Some(BTreeMap::from([(SSH_HOST.to_owned(), address.to_string())])),
                ..ObjectMeta::default()
            },
            spec: Some(k8s_openapi::api::core::v1::NodeSpec {
                taints: Some(
                    self.spec
                        .taints
                        .iter()
                        .map(|taint| k8s_openapi::api::core::v1::Taint {
                            key: taint.key.clone(),
                            value: (!taint.value.is_empty()).then(|| taint.value.clone()),
                            effect: taint.effect.clone(),
                            time_added: None,
                        })
                        .collect(),
                ),
                ..Default::default()
            }),
            status: None,
        };
        let parameters =
            PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let created = Api::<Node>::all(client.clone()).create(&parameters, &node).await;
        match created.map_err(|error| ApiError::new("create", format!("node/{}", self.goal.name), error)) {
            Ok(_) => {}
            Err(ApiError::Conflict { .. }) => {
                nodes::complete(&client, &self.goal.name, &node).await?;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(Returned { changed: 1, observed: Vec::new() })
    }
}

fn view(node: &Node) -> NodeView {
    let (status, condition) = (node.status.as_ref(), nodes::ready_condition(node));
    NodeView {
        pod_cidr: node.spec.as_ref().and_then(|spec| spec.pod_cidr.clone()),
        machine_id: machine_id(node),
        addresses: nodes::addresses_of(node).to_vec(),
        uninitialized: nodes::is_tainted(node, UNINITIALIZED_TAINT),
        unschedulable: node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or_default(),
        ready: nodes::is_ready(node),
        ready_message: condition.and_then(|condition| condition.message.clone()).unwrap_or_default(),
        has_capacity: status
            .and_then(|status| status.capacity.as_ref())
            .is_some_and(|capacity| !capacity.is_empty()),
        annotations: node.annotations().clone(),
    }
}

fn peer(node: &Node) -> Peer {
    let address = |key| node.annotations().get(key).and_then(|ip| ip.parse().ok());
    let manifest = NodeManifest::from(node);
    Peer {
        labels: manifest.metadata.labels,
        taints: persistent_taints(&manifest.spec.taints),
        address: node.annotations().get(SSH_HOST).cloned().unwrap_or_default(),
        workload_plane_ip: address(WORKLOAD_PLANE_IP),
        machine_id: machine_id(node),
        control_plane_ip: address(CONTROL_PLANE_IP),
        api_server: node.annotations().contains_key(API_SERVER),
        ready: nodes::is_ready(node),
        same_machine: false,
        run: RunState::default(),
    }
}

fn machine_id(node: &Node) -> String {
    node.status
        .as_ref()
        .and_then(|status| status.node_info.as_ref())
        .map(|info| info.machine_id.clone())
        .unwrap_or_default()
}

/// Reads the manifest of a static pod.
fn manifest_probe(pod: &ExpectedPod) -> Option<Probe> {
    match pod {
        ExpectedPod::Static(name) => {
            Some(Probe::Content { path: format!("/etc/kubernetes/manifests/{name}.yaml") })
        }
        ExpectedPod::DaemonSet(_) => None,
    }
}

/// The digests in the manifests of a host.
fn digests(expected: &[ExpectedPod], manifests: &Observed) -> BTreeMap<String, String> {
    let digest = |pod: &ExpectedPod| {
        let ExpectedPod::Static(name) = pod else { return None };
        let Some(Answer::Content(Some(manifest))) = manifests.get(&manifest_probe(pod)?) else { return None };
        let manifest: Pod = serde_saphyr::from_slice(manifest).ok()?;
        Some((name.clone(), pods::config_digest(&manifest)?.clone()))
    };
    expected.iter().filter_map(digest).collect()
}
