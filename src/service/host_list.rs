//! `host list`: the Hosts of the pool.

use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::Api;
use serde::Serialize;

use super::machine_api::{self, MachineApiError};
use crate::machine::api::host::HostObject;
use crate::machine::api::host_state::HostState;
use crate::model::api_contract::HOST_QUARANTINE;
use crate::operation::cluster_site::ApiPort;

/// One Host; what is not known of it is absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedHost {
    /// Name.
    pub name: String,
    /// What SSH connects to.
    pub address: String,
    /// How far it is from being free.
    pub state: HostState,
    /// Since when it is in this state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_since: Option<Timestamp>,
    /// `NAMESPACE/NAME` of the Machine that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The failure domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Operating system and version: `debian 13`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os: Option<String>,
    /// amd64, arm64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    /// Logical processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<i64>,
    /// Bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<i64>,
    /// Deployments that failed since the last one that succeeded.
    pub failures: i32,
    /// Why an operator keeps it out of the pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quarantine: Option<String>,
}

/// Lists all Hosts, by name.
///
/// # Errors
/// When the API cannot be used.
pub async fn list(port: &ApiPort) -> Result<Vec<ListedHost>, MachineApiError> {
    let api: Api<HostObject> = Api::all(machine_api::connect(port).await?);
    let mut hosts: Vec<ListedHost> = machine_api::list(&api).await?.iter().map(ListedHost::from).collect();
    hosts.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(hosts)
}

impl From<&HostObject> for ListedHost {
    fn from(host: &HostObject) -> Self {
        let status = host.status.clone().unwrap_or_default();
        let facts = status.facts.as_ref();
        Self {
            name: host.name_any(),
            address: host.spec.address.clone(),
            state: status.state,
            state_since: status.state_since.as_ref().map(|time| time.0),
            machine: status.claim.as_ref().map(|claim| {
                let machine = &claim.machine;
                format!("{}/{}", machine.namespace, machine.name)
            }),
            zone: host.spec.failure_domain.clone(),
            os: facts.map(|facts| format!("{} {}", facts.operating_system, facts.operating_system_version)),
            architecture: facts.map(|facts| facts.architecture.clone()),
            cpus: facts.map(|facts| facts.cpus),
            memory: facts.map(|facts| facts.memory),
            failures: status.failures,
            quarantine: host.annotations().get(HOST_QUARANTINE).cloned(),
        }
    }
}
