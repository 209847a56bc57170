//! What the Kubernetes API says, and what it is told.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::api::{Api, PostParams};

use super::ClusterSite;
use crate::kube_api::FIELD_MANAGER;
use crate::kube_api::client::ApiError;
use crate::kube_api::nodes::{self, Capacity};
use crate::kube_api::{pods, tokens};
use crate::model::api_contract::{API_SERVER, CONTROL_PLANE_IP, SSH_HOST, WORKLOAD_PLANE_IP};
use crate::model::error_chain::error_chain;
use crate::model::node::{NodeManifest, persistent_taints};
use crate::operation::site::{Done, Trouble};
use crate::operation::world::{NodeView, Peer, Seen, World};

/// How long a join token is good for: a kubelet that has not asked by then is helped by the next run.
const TOKEN_LIFE: SignedDuration = SignedDuration::from_mins(10);

impl ClusterSite {
    pub(super) async fn node(&mut self) -> Result<Seen, Trouble> {
        let client = self.client().await?;
        Ok(Seen::Node(nodes::get(&client, &self.goal.name).await?.as_ref().map(view)))
    }

    pub(super) async fn peers(&mut self) -> Result<Seen, Trouble> {
        let client = self.client().await?;
        let others =
            nodes::list(&client).await?.into_iter().filter(|node| node.name_any() != self.goal.name.as_str());
        Ok(Seen::Peers(others.map(|node| (node.name_any(), peer(&node))).collect()))
    }

    pub(super) async fn pods(&mut self) -> Result<Seen, Trouble> {
        let client = self.client().await?;
        let found = pods::of_node(&client, &self.goal.name).await?;
        Ok(Seen::MissingPods(pods::missing(&found, &self.goal.name, &self.goal.pods())))
    }

    pub(super) async fn api(&mut self) -> Result<Seen, Trouble> {
        let client = self.client().await?;
        let asked = client
            .request_text(axum::http::Request::get("/readyz").body(Vec::new()).unwrap_or_default())
            .await;
        Ok(Seen::Api(asked.err().map(|error| error_chain(&error))))
    }

    pub(super) async fn create_join_token(&mut self, world: &World) -> Result<Done, Trouble> {
        let client = self.client().await?;
        if let Some(facts) = &world.facts {
            let capacity = Capacity {
                cpus: facts.cpus,
                memory: facts.memory,
                storage: facts.disk_free,
                pods: self.setting.configuration.kubernetes.max_pods,
            };
            nodes::set_capacity(&client, &self.goal.name, capacity).await?;
        }
        let expires = (self.setting.now)() + TOKEN_LIFE;
        match tokens::create(&client, &self.token, &self.goal.name, expires).await {
            // Our own, of an attempt whose answer was lost.
            Ok(()) | Err(tokens::TokenError::Api(ApiError::Conflict { .. })) => Ok(Done::default()),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) async fn delete_join_token(&mut self) -> Result<Done, Trouble> {
        let client = self.client().await?;
        for id in tokens::ids(&client, &self.goal.name).await? {
            tokens::delete(&client, &id).await?;
        }
        Ok(Done::default())
    }

    pub(super) async fn join_tokens(&mut self) -> Result<Seen, Trouble> {
        let client = self.client().await?;
        Ok(Seen::JoinTokens(tokens::ids(&client, &self.goal.name).await?.len()))
    }

    pub(super) async fn annotate(&mut self, annotations: &[(String, String)]) -> Result<Done, Trouble> {
        let client = self.client().await?;
        let annotations = annotations.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect();
        let changed = nodes::annotate(&client, &self.goal.name, &annotations).await?;
        Ok(Done { changed: usize::from(changed) })
    }

    /// The bootstrap node's own object, as an operator would have written it.
    pub(super) async fn register_node(&mut self) -> Result<Done, Trouble> {
        let client = self.client().await?;
        let node = Node {
            metadata: ObjectMeta {
                name: Some(self.goal.name.to_string()),
                labels: Some(self.spec.labels.clone()),
                annotations: Some(BTreeMap::from([(
                    SSH_HOST.to_owned(),
                    self.goal.control_plane_ip.to_string(),
                )])),
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
        let created = Api::<Node>::all(client).create(&parameters, &node).await;
        created.map_err(|error| ApiError::new("create", format!("node/{}", self.goal.name), error))?;
        Ok(Done { changed: 1 })
    }
}

fn view(node: &Node) -> NodeView {
    let status = node.status.as_ref();
    let condition = status
        .and_then(|status| status.conditions.as_ref())
        .and_then(|conditions| conditions.iter().find(|condition| condition.type_ == "Ready"));
    NodeView {
        pod_cidr: node.spec.as_ref().and_then(|spec| spec.pod_cidr.clone()),
        machine_id: machine_id(node),
        internal_ip: status.and_then(|status| status.addresses.as_ref()).and_then(|addresses| {
            addresses
                .iter()
                .find(|address| address.type_ == "InternalIP")
                .and_then(|address| address.address.parse().ok())
        }),
        ready: condition.is_some_and(|condition| condition.status == "True"),
        ready_message: condition.and_then(|condition| condition.message.clone()).unwrap_or_default(),
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
    }
}

fn machine_id(node: &Node) -> String {
    node.status
        .as_ref()
        .and_then(|status| status.node_info.as_ref())
        .map(|info| info.machine_id.clone())
        .unwrap_or_default()
}
