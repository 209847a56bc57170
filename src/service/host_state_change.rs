//! `host inspect`, `release`, `quarantine` and `lost`: requests to the controllers, decided on what the API has now.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::json;

use super::command_error::{CommandError, ErrorClass};
use super::host_list::ListedHost;
use super::machine_api::{self, MachineApiError};
use crate::kube_api::FIELD_MANAGER;
use crate::kube_api::client::ApiError;
use crate::kube_api::nodes;
use crate::machine::api::host::HostObject;
use crate::machine::api::host_claim::MachineReference;
use crate::machine::api::machine::Machine;
use crate::machine::host_change::{self, ClaimantStatus, HostRefusal, HostRequest};
use crate::model::api_contract::MACHINE_UID;
use crate::model::name::HostName;
use crate::operation::cluster_site::ApiPort;

/// Why a request was not written.
#[derive(Debug, thiserror::Error)]
pub enum HostStateError {
    /// The API cannot be used.
    #[error(transparent)]
    Api(#[from] MachineApiError),
    /// The request is refused.
    #[error("host {name}: {refusal}")]
    Refused {
        /// The Host.
        name: HostName,
        /// Why.
        refusal: HostRefusal,
    },
}

impl CommandError for HostStateError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Api(error) => error.class(),
            Self::Refused { .. } => ErrorClass::Refused,
        }
    }

    fn errors(&self) -> Vec<String> {
        vec![self.to_string()]
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Api(error) => error.hints(),
            Self::Refused { name, refusal } => hint(name, refusal).into_iter().collect(),
        }
    }
}

fn hint(name: &HostName, refusal: &HostRefusal) -> Option<String> {
    match refusal {
        HostRefusal::Claimed { machine, .. } => {
            let MachineReference { namespace, name, .. } = machine;
            Some(format!(
                "to have its node drained and the host released: kubectl -n {namespace} delete machine {name}"
            ))
        }
        HostRefusal::MachineRuns { machine } => {
            let MachineReference { namespace, name: machine, .. } = machine;
            Some(format!(
                "delete the Machine (kubectl -n {namespace} delete machine {machine}), or switch the host off, verify that \
                 it is off, and run `metalform host release {name} --confirm-powered-off`"
            ))
        }
        HostRefusal::NodeRuns { .. } => Some(format!(
            "switch the host off, verify that it is off, and run `metalform host release {name} --confirm-powered-off`"
        )),
        HostRefusal::NodeReady { .. } => Some(format!(
            "switch the host off, wait until its Node is NotReady, and run \
             `metalform host lost {name} --reason REASON --confirm-powered-off`"
        )),
        HostRefusal::Held(_) => Some(format!("run `metalform host release {name}`")),
        HostRefusal::NothingToRelease(_) => None,
    }
}

/// Writes the request. The Host with it, and whether it was written: not if it was requested already, or the controllers
/// do so by themselves.
///
/// # Errors
/// When the API cannot be used, the request is refused, or the Host changed meanwhile.
pub async fn change(
    port: &ApiPort,
    name: &HostName,
    request: &HostRequest,
    now: Timestamp,
) -> Result<(ListedHost, bool), HostStateError> {
    let client = machine_api::connect(port).await?;
    let api: Api<HostObject> = Api::all(client.clone());
    let mut host = machine_api::get(&api, name.as_str()).await?;
    let status = host.status.clone().unwrap_or_default();
    let claimant = match (&status.claim, request) {
        (Some(claim), HostRequest::Release { .. }) => claimant(&client, name, &claim.machine).await?,
        (Some(claim), HostRequest::Lost { .. }) => node_status(&client, name, &claim.machine).await?,
        _ => ClaimantStatus::Gone,
    };
    let annotations = host_change::annotations(&status, host.annotations(), request, claimant, now)
        .map_err(|refusal| HostStateError::Refused { name: name.clone(), refusal })?;
    let differs = |(key, value): (&&str, &Option<String>)| host.annotations().get(*key) != value.as_ref();
    let changed = annotations.iter().any(differs);
    if changed {
        let metadata = json!({ "resourceVersion": host.resource_version(), "annotations": annotations });
        let parameters =
            PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        let patched = api.patch(name.as_str(), &parameters, &patch).await;
        host = patched
            .map_err(|error| MachineApiError::Api(ApiError::new("patch", format!("host/{name}"), error)))?;
    }
    Ok((ListedHost::from(&host), changed))
}

/// A Machine of the same name with another UID is another one.
async fn claimant(
    client: &Client,
    host: &HostName,
    machine: &MachineReference,
) -> Result<ClaimantStatus, MachineApiError> {
    let api: Api<Machine> = Api::namespaced(client.clone(), &machine.namespace);
    match machine_api::get(&api, &machine.name).await {
        Ok(found) if found.uid().as_ref() == Some(&machine.uid) => return Ok(ClaimantStatus::Exists),
        Ok(_) | Err(MachineApiError::NotFound(_)) => {}
        Err(error) => return Err(error),
    }
    node_status(client, host, machine).await
}

/// Of its Node alone.
async fn node_status(
    client: &Client,
    host: &HostName,
    machine: &MachineReference,
) -> Result<ClaimantStatus, MachineApiError> {
    let nodes = nodes::list(client).await?;
    let ready = nodes.iter().any(|node| is_node_of(node, host, machine) && nodes::is_ready(node));
    Ok(if ready { ClaimantStatus::NodeReady } else { ClaimantStatus::Gone })
}

fn is_node_of(node: &Node, host: &HostName, machine: &MachineReference) -> bool {
    node.name_any() == host.as_str() || node.labels().get(MACHINE_UID) == Some(&machine.uid)
}
