//! `machine list` and `describe`: Machines, and what has happened to one.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde::Serialize;

use super::host_list::ListedHost;
use super::machine_api::{self, MachineApiError};
use crate::kube_api::client::ApiError;
use crate::machine::api::host::HostObject;
use crate::machine::api::machine::Machine;
use crate::machine::api::machine_status::MachinePhase;
use crate::operation::cluster_site::ApiPort;

/// One Machine; what is not known of it is absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedMachine {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// How far it is; absent before a controller has seen it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<MachinePhase>,
    /// It has a deletion timestamp.
    pub deleting: bool,
    /// Its Host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Its Node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Status of its condition Ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<String>,
    /// Of the kubelet, as specified.
    pub version: String,
    /// Its MachineSet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_set: Option<String>,
    /// When it was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    /// Of its Node: `metalform://HOST/UID`.
    #[serde(rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
}

/// A Machine with what has happened to it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DescribedMachine {
    /// As it is listed.
    pub machine: ListedMachine,
    /// Why it will never become a node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Its Host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<ListedHost>,
    /// In the order of their last transition.
    pub conditions: Vec<Condition>,
    /// The oldest first.
    pub events: Vec<MachineEvent>,
}

/// An Event about a Machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MachineEvent {
    /// When it was last reported.
    pub time: Option<Timestamp>,
    /// `Normal` or `Warning`.
    #[serde(rename = "type")]
    pub type_: String,
    /// One word.
    pub reason: String,
    /// For people.
    pub message: String,
}

impl From<&Machine> for ListedMachine {
    fn from(machine: &Machine) -> Self {
        let status = machine.status.clone().unwrap_or_default();
        let ready = status.conditions.iter().find(|condition| condition.type_ == "Ready");
        let owner = machine.owner_references().iter().find(|owner| owner.controller == Some(true));
        Self {
            namespace: machine.namespace().unwrap_or_default(),
            name: machine.name_any(),
            phase: status.phase,
            deleting: machine.metadata.deletion_timestamp.is_some(),
            host: status.host,
            node: status.node_ref.and_then(|node| node.name),
            ready: ready.map(|condition| condition.status.clone()),
            version: machine.spec.versions.kubelet.clone(),
            machine_set: owner.map(|owner| owner.name.clone()),
            created: machine.creation_timestamp().map(|time| time.0),
            provider_id: machine.spec.provider_id.clone(),
        }
    }
}

/// Lists the Machines of a namespace, by name.
///
/// # Errors
/// When the API cannot be used.
pub async fn list(port: &ApiPort, namespace: &str) -> Result<Vec<ListedMachine>, MachineApiError> {
    let api: Api<Machine> = Api::namespaced(machine_api::connect(port).await?, namespace);
    let mut machines: Vec<ListedMachine> =
        machine_api::list(&api).await?.iter().map(ListedMachine::from).collect();
    machines.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(machines)
}

/// One Machine, with its Host, conditions and Events.
///
/// # Errors
/// When the API cannot be used, or there is no such Machine.
pub async fn describe(
    port: &ApiPort,
    namespace: &str,
    name: &str,
) -> Result<DescribedMachine, MachineApiError> {
    let client = machine_api::connect(port).await?;
    let api: Api<Machine> = Api::namespaced(client.clone(), namespace);
    let machine = machine_api::get(&api, name).await?;
    let listed = ListedMachine::from(&machine);
    let status = machine.status.clone().unwrap_or_default();
    let host = match &listed.host {
        None => None,
        Some(host) => {
            let api: Api<HostObject> = Api::all(client.clone());
            match machine_api::get(&api, host).await {
                Ok(host) => Some(ListedHost::from(&host)),
                Err(MachineApiError::NotFound(_)) => None,
                Err(error) => return Err(error),
            }
        }
    };
    let mut conditions = status.conditions;
    conditions.sort_by(|one, other| {
        (&one.last_transition_time.0, &one.type_).cmp(&(&other.last_transition_time.0, &other.type_))
    });
    let error = status.error_reason.map(|reason| match status.error_message {
        Some(message) => format!("{reason:?}: {message}"),
        None => format!("{reason:?}"),
    });
    let api: Api<Event> = Api::namespaced(client, namespace);
    let of_machine = format!("involvedObject.kind=Machine,involvedObject.name={name}");
    let events = api.list(&ListParams::default().fields(&of_machine)).await;
    let events = events.map_err(|error| ApiError::new("list", "events", error))?;
    // A Machine of the same name before it had another UID.
    let own =
        |event: &&Event| event.involved_object.uid.is_none() || event.involved_object.uid == machine.uid();
    let mut events: Vec<MachineEvent> = events.items.iter().filter(own).map(MachineEvent::from).collect();
    events.sort_by(|one, other| (one.time, &one.reason).cmp(&(other.time, &other.reason)));
    Ok(DescribedMachine { machine: listed, error, host, conditions, events })
}

impl From<&Event> for MachineEvent {
    fn from(event: &Event) -> Self {
        let time = event.last_timestamp.as_ref().map(|time| time.0);
        Self {
            time: time.or_else(|| event.event_time.as_ref().map(|time| time.0)),
            type_: event.type_.clone().unwrap_or_default(),
            reason: event.reason.clone().unwrap_or_default(),
            message: event.message.clone().unwrap_or_default(),
        }
    }
}
