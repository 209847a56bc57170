//! Reads what a pass over a Machine or a Host is decided from, and carries out what is no write of one object.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::api::Api;
use kube::{Client, ResourceExt};

use super::machine_requests::{get, get_named};
use crate::kube_api::client::ApiError;
use crate::kube_api::eviction;
use crate::kube_api::nodes;
use crate::kube_api::pod_name::PodName;
use crate::kube_api::tokens::{self, TokenError};
use crate::machine::api::host::HostObject;
use crate::machine::api::machine::Machine;
use crate::machine::csr::{self, NodeMachine};
use crate::machine::host_observation::HostObjects;
use crate::machine::life_observation::{MachineObjects, choice_of_noted};
use crate::machine::node_observation::accepts_pods;
use crate::model::name::HostName;

/// The Machine of this name and UID as the API server has it now; `None` if it does not exist.
pub(super) async fn read_machine(client: &Client, observed: &Machine) -> Result<Option<Machine>, ApiError> {
    let found = get(client, observed).await?;
    Ok(found.filter(|found| found.uid() == observed.uid()))
}

/// The Host that it has noted, which is the only one that it may have claimed; its Node; and, where a cache shows no other
/// node for its pods, all Nodes. The Host is read after the Machine, and the Node last. The choice of a Machine that has
/// noted no Host is the cached one, and so is what its MachineDeployment defines.
pub(super) async fn read_machine_objects(
    client: &Client,
    machine: Machine,
    cached: &MachineObjects,
) -> Result<MachineObjects, ApiError> {
    let noted = machine.status.as_ref().and_then(|status| status.host.clone());
    let hosts: Api<HostObject> = Api::all(client.clone());
    let host = match &noted {
        Some(noted) => get_named(&hosts, noted).await?,
        None => None,
    };
    let node = match noted.as_ref().and_then(|noted| noted.parse().ok()) {
        Some(noted) => nodes::get(client, &noted).await?,
        None => None,
    };
    let choice = match &noted {
        Some(_) => choice_of_noted(&machine, host.as_ref()),
        None => cached.choice.clone(),
    };
    let is_draining = machine.metadata.deletion_timestamp.is_some() && node.is_some();
    let elsewhere = if cached.elsewhere || !is_draining {
        cached.elsewhere
    } else {
        let nodes = nodes::list(client).await?;
        nodes.iter().any(|node| Some(&node.name_any()) != noted.as_ref() && accepts_pods(node))
    };
    Ok(MachineObjects {
        machine: Arc::new(machine),
        host: host.map(Arc::new),
        node: node.map(Arc::new),
        choice,
        elsewhere,
        drain_timeout: cached.drain_timeout,
    })
}

/// The Host as the API server has it now, then the Machine in its claim, then its Node; `None` if it does not exist. What it
/// is in conflict with is as cached.
pub(super) async fn read_host_objects(
    client: &Client,
    cached: &HostObjects,
    name: &HostName,
) -> Result<Option<HostObjects>, ApiError> {
    let hosts: Api<HostObject> = Api::all(client.clone());
    let found = get_named(&hosts, name.as_str()).await?;
    let Some(host) = found.filter(|found| found.uid() == cached.host.uid()) else { return Ok(None) };
    let machine = read_claiming(client, &host).await?;
    let node = nodes::get(client, name).await?;
    let conflict = cached.conflict.clone();
    let (host, machine, node) = (Arc::new(host), machine.map(Arc::new), node.map(Arc::new));
    Ok(Some(HostObjects { host, machine, node, conflict }))
}

/// The Node as the API server has it now, then the Host of its provider ID, then the Machine in the claim of that Host;
/// `None` for a Node that no Machine has, or that does not exist.
pub(super) async fn read_node_machine(
    client: &Client,
    name: &HostName,
) -> Result<Option<NodeMachine>, ApiError> {
    let Some(node) = nodes::get(client, name).await? else { return Ok(None) };
    let Some(id) = csr::machine_of(&node) else { return Ok(None) };
    let hosts: Api<HostObject> = Api::all(client.clone());
    let host = get_named(&hosts, id.host.as_str()).await?;
    let machine = match &host {
        Some(host) => read_claiming(client, host).await?,
        None => None,
    };
    Ok(Some(NodeMachine::observe(id, &node, host.as_ref(), machine.as_ref())))
}

/// The Machine with the namespace and name of a Host's claim, also one of another UID.
async fn read_claiming(client: &Client, host: &HostObject) -> Result<Option<Machine>, ApiError> {
    let claim = host.status.as_ref().and_then(|status| status.claim.as_ref()).map(|claim| &claim.machine);
    let Some(claim) = claim else { return Ok(None) };
    let machines: Api<Machine> = Api::namespaced(client.clone(), &claim.namespace);
    get_named(&machines, &claim.name).await
}

/// Evicts pods. Returns those that stay, and why.
pub(super) async fn evict(
    client: &Client,
    pods: &BTreeSet<PodName>,
) -> Result<BTreeMap<PodName, String>, ApiError> {
    let mut refused = BTreeMap::new();
    for pod in pods {
        let refusal = eviction::evict(client, pod).await?;
        tracing::info!(%pod, evicted = refusal.is_none(), "machines: evict");
        refused.extend(refusal.map(|refusal| (pod.clone(), refusal.to_string())));
    }
    Ok(refused)
}

/// Deletes pods of a node.
pub(super) async fn delete_pods(
    client: &Client,
    pods: &BTreeSet<PodName>,
    node: &HostName,
) -> Result<(), ApiError> {
    for pod in pods {
        eviction::delete(client, pod, node).await?;
        tracing::info!(%pod, "machines: delete");
    }
    Ok(())
}

/// Deletes all tokens with which a kubelet could join as this node.
pub(super) async fn revoke_tokens(client: &Client, node: &HostName) -> Result<(), TokenError> {
    for id in tokens::ids(client, node).await? {
        tokens::delete(client, &id).await?;
    }
    Ok(())
}
