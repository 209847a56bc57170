//! Reads the objects that a pass of the machine controllers is decided from, and carries out what was decided.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::kube_api::FIELD_MANAGER;
use crate::kube_api::client::ApiError;
use crate::machine::api::machine_deployment::MachineDeployment;
use crate::machine::api::machine_set::MachineSet;
use crate::machine::object_write::{MachineWrite, ObjectWrite};
use crate::machine::rollout_decision::{RolloutObjects, doubted_nodes};
use crate::machine::set_decision::SetObjects;

/// What was done of a list of writes.
#[derive(Debug)]
pub struct CarriedOut {
    /// The writes that the API server has accepted, in order.
    pub done: Vec<MachineWrite>,
    /// The object of the next write had changed, or was gone: nothing after it was tried.
    pub conflict: Option<ApiError>,
}

/// The MachineDeployments of the namespace as the API server has them now, the sets, and then the Machines, which thus
/// are newer than the sets; `None` if that of the pass does not exist. Of the Nodes, those for which a Machine would be
/// deleted are as the API server has them, the others as cached.
pub(super) async fn read_rollout(
    client: &Client,
    cached: &RolloutObjects,
    now: Timestamp,
) -> Result<Option<RolloutObjects>, ApiError> {
    let namespace = cached.deployment.namespace().unwrap_or_default();
    // A list, not this one alone: the caches may not show an earlier one that was created just before.
    let deployments: Vec<Arc<MachineDeployment>> = list(client, &namespace).await?;
    let name = cached.deployment.name_any();
    let Some(deployment) = deployments.iter().find(|one| one.name_any() == name).cloned() else {
        return Ok(None);
    };
    let sets = list(client, &namespace).await?;
    let machines = list(client, &namespace).await?;
    let nodes = cached.nodes.clone();
    let mut objects = RolloutObjects { deployment, deployments, sets, machines, nodes };
    let mut read = BTreeSet::new();
    // Another Machine may be next where a Node has recovered.
    loop {
        let doubted = doubted_nodes(&objects, now);
        let unread: Vec<String> = doubted.into_iter().filter(|name| !read.contains(name)).collect();
        if unread.is_empty() {
            return Ok(Some(objects));
        }
        for name in unread {
            match get_named(&Api::<Node>::all(client.clone()), &name).await? {
                Some(node) => objects.nodes.insert(name.clone(), Arc::new(node)),
                None => objects.nodes.remove(&name),
            };
            read.insert(name);
        }
    }
}

/// The MachineSet as the API server has it now, and then the Machines; `None` if it does not exist.
pub(super) async fn read_set(client: &Client, observed: &MachineSet) -> Result<Option<SetObjects>, ApiError> {
    let Some(set) = get(client, observed).await? else { return Ok(None) };
    let machines = list(client, &observed.namespace().unwrap_or_default()).await?;
    Ok(Some(SetObjects { set: Arc::new(set), machines }))
}

/// Carries out the writes in order, up to the first conflict. `namespace` is that of all but Hosts and Nodes.
///
/// # Errors
/// When the API server does not answer or refuses a write. What came before is done.
pub(super) async fn carry_out(
    client: &Client,
    namespace: &str,
    writes: Vec<MachineWrite>,
) -> Result<CarriedOut, ApiError> {
    let mut done = Vec::new();
    for write in writes {
        let result = match &write {
            MachineWrite::Deployment(write) => one(Api::namespaced(client.clone(), namespace), write).await,
            MachineWrite::Set(write) => one(Api::namespaced(client.clone(), namespace), write).await,
            MachineWrite::Machine(write) => one(Api::namespaced(client.clone(), namespace), write).await,
            MachineWrite::Host(write) => one(Api::all(client.clone()), write).await,
            MachineWrite::Node(write) => one(Api::all(client.clone()), write).await,
        };
        match result {
            Ok(()) => {
                tracing::info!(namespace, %write, "machines");
                done.push(write);
            }
            Err(conflict @ (ApiError::Conflict { .. } | ApiError::NotFound { .. })) => {
                return Ok(CarriedOut { done, conflict: Some(conflict) });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(CarriedOut { done, conflict: None })
}

async fn one<K>(api: Api<K>, write: &ObjectWrite<K>) -> Result<(), ApiError>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Serialize,
{
    let manager = || Some(FIELD_MANAGER.to_owned());
    let patching = PatchParams { field_manager: manager(), ..PatchParams::default() };
    let merge = |patch: &Value| Patch::Merge(patch.clone());
    let result = match write {
        ObjectWrite::Create(object) => {
            let creating = PostParams { field_manager: manager(), ..PostParams::default() };
            api.create(&creating, object).await.map(drop)
        }
        ObjectWrite::Patch { name, patch } => api.patch(name, &patching, &merge(patch)).await.map(drop),
        ObjectWrite::PatchStatus { name, patch } => {
            api.patch_status(name, &patching, &merge(patch)).await.map(drop)
        }
        ObjectWrite::Delete { name, uid, version } => {
            let preconditions = Preconditions { uid: uid.clone(), resource_version: version.clone() };
            let deleting = DeleteParams::default().preconditions(preconditions);
            api.delete(name, &deleting).await.map(drop)
        }
    };
    result.map_err(|error| ApiError::new(write.verb(), write.object(), error))
}

pub(super) async fn get<K>(client: &Client, observed: &K) -> Result<Option<K>, ApiError>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(client.clone(), &observed.namespace().unwrap_or_default());
    get_named(&api, &observed.name_any()).await
}

/// The object of this name as the API server has it now; `None` if it does not exist.
pub(super) async fn get_named<K>(api: &Api<K>, name: &str) -> Result<Option<K>, ApiError>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let object = || format!("{}/{name}", K::kind(&()).to_lowercase());
    api.get_opt(name).await.map_err(|error| ApiError::new("get", object(), error))
}

/// Without a resource version: the API server answers with nothing older than the last write.
async fn list<K>(client: &Client, namespace: &str) -> Result<Vec<Arc<K>>, ApiError>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    let listed = api.list(&ListParams::default()).await;
    let listed = listed.map_err(|error| ApiError::new("list", K::plural(&()).into_owned(), error))?;
    Ok(listed.items.into_iter().map(Arc::new).collect())
}
