//! The provider `clusterapi` of cluster-autoscaler with `CAPI_GROUP=cluster.k8s.io`, request by request, as its source
//! makes them (kubernetes/autoscaler, `cluster-autoscaler/cloudprovider/clusterapi`).

use std::collections::BTreeMap;

use axum::http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};

use super::node_group::{NodeGroup, text};

const GROUP: &str = "cluster.k8s.io";
const JSON: &str = "application/json";

pub struct Autoscaler {
    client: Client,
    /// `/apis/GROUP/VERSION`.
    base: String,
}

/// What its informers show.
pub struct Informers {
    pub deployments: Vec<Value>,
    pub sets: Vec<Value>,
    pub machines: Vec<Value>,
    pub nodes: Vec<Value>,
}

impl Autoscaler {
    /// Finds the version of the group and its kinds (`newMachineController`), and the subresource `scale` (client-go,
    /// `scale.NewDiscoveryScaleKindResolver`).
    pub async fn start(client: Client) -> Self {
        let autoscaler = Self { client, base: String::new() };
        let groups = autoscaler.get("/apis").await;
        let groups = groups["groups"].as_array().unwrap().clone();
        let group = groups.iter().find(|group| group["name"] == json!(GROUP)).unwrap();
        let base = format!("/apis/{}", text(&group["preferredVersion"]["groupVersion"]));
        let resources = autoscaler.get(&base).await;
        let kind_of = |name: &str| {
            let mut all = resources["resources"].as_array().unwrap().iter();
            all.find(|one| one["name"] == json!(name)).map(|one| one["kind"].clone())
        };
        assert_eq!(kind_of("machinedeployments"), Some(json!("MachineDeployment")));
        assert_eq!(kind_of("machinedeployments/scale"), Some(json!("Scale")));
        assert_eq!(kind_of("machinepools"), None, "these are not available");
        Self { base, ..autoscaler }
    }

    async fn send(&self, method: Method, path: &str, of: &str, body: &Value) -> Result<Value, String> {
        let body = if body.is_null() { Vec::new() } else { serde_json::to_vec(body).unwrap() };
        let request = Request::builder().method(method).uri(path).header("content-type", of).body(body);
        self.client.request(request.unwrap()).await.map_err(|error| error.to_string())
    }

    async fn get(&self, path: &str) -> Value {
        self.send(Method::GET, path, JSON, &Value::Null).await.unwrap()
    }

    /// Lists what its informers list, in all namespaces.
    pub async fn look(&self) -> Informers {
        let items = async |path: String| self.get(&path).await["items"].as_array().unwrap().clone();
        Informers {
            deployments: items(format!("{}/machinedeployments", self.base)).await,
            sets: items(format!("{}/machinesets", self.base)).await,
            machines: items(format!("{}/machines", self.base)).await,
            nodes: items("/api/v1/nodes".to_owned()).await,
        }
    }

    /// `nodeGroups`: of several, the only one. MachineSets that a MachineDeployment owns are none.
    pub async fn node_group(&self) -> Option<NodeGroup> {
        let mut groups = self.look().await.node_groups();
        assert!(groups.len() < 2, "{groups:?}");
        groups.pop()
    }

    fn path(&self, plural: &str, metadata: &Value) -> String {
        let (namespace, name) = (text(&metadata["namespace"]), text(&metadata["name"]));
        format!("{}/namespaces/{namespace}/{plural}/{name}", self.base)
    }

    /// `GET` of `scale`.
    pub async fn scale(&self, group: &NodeGroup) -> Value {
        let path = self.path("machinedeployments", &group.object["metadata"]);
        self.get(&format!("{path}/scale")).await
    }

    async fn replicas(&self, group: &NodeGroup) -> i64 {
        self.scale(group).await["spec"]["replicas"].as_i64().unwrap()
    }

    /// `SetSize`: a merge patch of `scale` without a version.
    async fn set_size(&self, group: &NodeGroup, replicas: i64) -> Result<(), String> {
        if replicas > group.max || replicas < group.min {
            return Err(format!("desired:{replicas} min:{} max:{}", group.min, group.max));
        }
        let path = format!("{}/scale", self.path("machinedeployments", &group.object["metadata"]));
        let patch = json!({ "spec": { "replicas": replicas } });
        self.send(Method::PATCH, &path, "application/merge-patch+json", &patch).await.map(drop)
    }

    /// `IncreaseSize`.
    pub async fn increase(&self, group: &NodeGroup, delta: i64) -> Result<(), String> {
        let replicas = self.replicas(group).await;
        self.set_size(group, replicas + delta).await
    }

    /// `DeleteNodes` of one node: its Machine is marked, then the size is decreased.
    pub async fn delete_node(&self, group: &NodeGroup, node: &Value) -> Result<(), String> {
        let replicas = self.replicas(group).await;
        if replicas <= group.min {
            return Err("min size reached, nodes will not be deleted".to_owned());
        }
        let seen = self.look().await;
        let owner = seen.node_group_of(node).ok_or("no node group found")?;
        if owner.id() != group.id() {
            return Err("the node does not belong to the node group".to_owned());
        }
        let machine = seen.machine_of(node).ok_or("unknown machine")?;
        if !machine["metadata"]["deletionTimestamp"].is_null() {
            return Ok(());
        }
        self.mark(machine).await?;
        self.set_size(group, replicas - 1).await
    }

    /// `MarkMachineForDeletion`: an update of the whole object, in the version that was read.
    async fn mark(&self, machine: &Value) -> Result<(), String> {
        let path = self.path("machines", &machine["metadata"]);
        let mut machine = self.get(&path).await;
        let mut annotations: BTreeMap<String, Value> =
            serde_json::from_value(machine["metadata"]["annotations"].clone()).unwrap_or_default();
        annotations.insert(format!("{GROUP}/delete-machine"), json!("2026-01-03 00:00:00 +0000 UTC m=+1.0"));
        machine["metadata"]["annotations"] = json!(annotations);
        self.send(Method::PUT, &path, JSON, &machine).await.map(drop)
    }

    /// `DecreaseTargetSize`: gives up Machines that are no nodes yet.
    pub async fn decrease(&self, group: &NodeGroup, delta: i64) -> Result<(), String> {
        let size = self.replicas(group).await;
        let nodes = self.look().await.instances(group).into_iter().filter(|(_, state)| *state == "running");
        if size + delta < i64::try_from(nodes.count()).unwrap() {
            return Err("attempt to delete existing nodes".to_owned());
        }
        self.set_size(group, size + delta).await
    }
}
