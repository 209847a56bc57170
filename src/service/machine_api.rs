//! Machines and Hosts of the cluster, as the API server has them.

use std::fmt::Debug;

use kube::api::{Api, ListParams};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;

use super::command_error::{CommandError, ErrorClass};
use crate::kube_api::client::{self, ApiError};
use crate::model::error_chain::error_chain;
use crate::operation::cluster_site::ApiPort;
use crate::workspace::trust::API;

/// Why objects cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum MachineApiError {
    /// The API cannot be used.
    #[error("{} ({API})", error_chain(.0))]
    Api(#[from] ApiError),
    /// The API does not serve the kind.
    #[error("the API server does not serve {0}")]
    NotServed(String),
    /// There is no such object.
    #[error("{0} not found")]
    NotFound(String),
}

impl CommandError for MachineApiError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Api(_) => ErrorClass::Api,
            Self::NotServed(_) | Self::NotFound(_) => ErrorClass::Configuration,
        }
    }

    fn errors(&self) -> Vec<String> {
        vec![self.to_string()]
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Api(ApiError::Kubeconfig { .. } | ApiError::Unusable { .. }) => {
                "run this command as root on the bootstrap node"
            }
            Self::Api(ApiError::Conflict { .. }) => {
                "the object has changed meanwhile; run the same command again"
            }
            Self::Api(ApiError::Refused { .. }) => return Vec::new(),
            Self::Api(_) => "check the API server: kubectl --kubeconfig /etc/kubernetes/admin.conf get nodes",
            Self::NotServed(_) => "run `metalform bootstrap`, which defines it",
            Self::NotFound(_) => {
                "list the objects: `metalform host list`, `metalform machine list`, kubectl get machinedeployments -A"
            }
        };
        vec![hint.to_owned()]
    }
}

/// A client of the cluster.
///
/// # Errors
/// When the kubeconfig cannot be used.
pub async fn connect(port: &ApiPort) -> Result<Client, MachineApiError> {
    Ok(match port {
        ApiPort::Client(client) => client.clone(),
        ApiPort::Kubeconfig(path) => client::connect(path).await?,
    })
}

/// All objects of a kind.
///
/// # Errors
/// When the API does not answer, refuses, or does not serve the kind.
pub async fn list<K>(api: &Api<K>) -> Result<Vec<K>, MachineApiError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let plural = K::plural(&()).into_owned();
    match api.list(&ListParams::default()).await.map_err(|error| ApiError::new("list", plural.clone(), error))
    {
        Ok(list) => Ok(list.items),
        Err(ApiError::NotFound { .. }) => Err(MachineApiError::NotServed(plural)),
        Err(error) => Err(error.into()),
    }
}

/// One object.
///
/// # Errors
/// When the API does not answer or refuses, or there is no such object.
pub async fn get<K>(api: &Api<K>, name: &str) -> Result<K, MachineApiError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let title = title::<K>(name);
    let found = api.get_opt(name).await.map_err(|error| ApiError::new("get", title.clone(), error))?;
    found.ok_or(MachineApiError::NotFound(title))
}

/// `Host node-1`.
pub(super) fn title<K: Resource<DynamicType = ()>>(name: &str) -> String {
    format!("{} {name}", K::kind(&()))
}
