//! `etcd members`, `etcd health`: observes every member of etcd.

use std::sync::Arc;

use super::command_error::{CommandError, ErrorClass};
use crate::etcd::client::{ClientError, DEADLINE, EtcdAccess, EtcdCredentials};
use crate::etcd::member::Membership;
use crate::kube_api::{client, nodes};
use crate::model::api_contract::CONTROL_PLANE_IP;
use crate::model::error_chain::error_chain;
use crate::model::node::NodeSpec;
use crate::model::role::Role;
use crate::workspace::layout::Layout;

/// Why etcd cannot be observed.
#[derive(Debug, thiserror::Error)]
pub enum EtcdMembersError {
    /// Its client certificate cannot be used.
    #[error("{}", error_chain(.0))]
    Credentials(ClientError),
    /// No member answered.
    #[error("{}", error_chain(.0))]
    Observe(ClientError),
}

impl CommandError for EtcdMembersError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Etcd
    }

    fn errors(&self) -> Vec<String> {
        vec![self.to_string()]
    }

    fn hints(&self) -> Vec<String> {
        let mut hints = vec!["run this command as root on the bootstrap node".to_owned()];
        if matches!(self, Self::Observe(ClientError::NoAnswer { .. })) {
            hints.push(
                "where most members are gone for good, `metalform etcd recover --dry-run` shows what can be kept".to_owned(),
            );
        }
        hints
    }
}

/// Members that are not healthy, and alarms; never empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct UnhealthyEtcd(Vec<String>);

impl CommandError for UnhealthyEtcd {
    fn class(&self) -> ErrorClass {
        ErrorClass::Etcd
    }

    fn errors(&self) -> Vec<String> {
        self.0.clone()
    }

    fn hints(&self) -> Vec<String> {
        vec!["check the member on its node: crictl logs, journalctl -u kubelet".to_owned()]
    }
}

/// Asks the members on this machine and on all other etcd nodes; those are known only while the API answers.
///
/// # Errors
/// When the client certificate cannot be used, or no member answers.
pub async fn members(layout: &Layout) -> Result<Membership, EtcdMembersError> {
    all(layout).await?.observe().await.map_err(EtcdMembersError::Observe)
}

/// How the member on this machine and those on all other etcd nodes are reached.
///
/// # Errors
/// When the client certificate cannot be used.
pub(super) async fn all(layout: &Layout) -> Result<EtcdAccess, EtcdMembersError> {
    let mut endpoints = vec!["https://127.0.0.1:2379".to_owned()];
    endpoints.extend(other_endpoints(layout).await);
    access(layout, endpoints)
}

/// How these endpoints are reached, with the client certificate of this machine.
///
/// # Errors
/// When it cannot be used.
pub(super) fn access(layout: &Layout, endpoints: Vec<String>) -> Result<EtcdAccess, EtcdMembersError> {
    let (certificate, key) = layout.etcd_client();
    let credentials = EtcdCredentials::read(&layout.pki().join("etcd/ca.crt"), &certificate, &key)
        .map_err(EtcdMembersError::Credentials)?;
    Ok(EtcdAccess { endpoints, connector: Arc::new(credentials), deadline: DEADLINE })
}

/// Whether every voting member is healthy and no alarm is raised.
///
/// # Errors
/// One line for each member that is not healthy, and for each alarm.
pub fn health(membership: &Membership) -> Result<(), UnhealthyEtcd> {
    let mut errors: Vec<String> = membership
        .voters()
        .filter_map(|voter| {
            voter.health.complaint().map(|reason| format!("etcd member {}: {reason}", voter.title()))
        })
        .collect();
    errors.extend(
        membership
            .alarms
            .iter()
            .map(|alarm| format!("etcd alarm {} for member {:x}", alarm.kind.name(), alarm.member)),
    );
    if errors.is_empty() { Ok(()) } else { Err(UnhealthyEtcd(errors)) }
}

/// Members on other nodes. An API that does not answer is no error: etcd is looked at above all then.
async fn other_endpoints(layout: &Layout) -> Vec<String> {
    let Ok(client) = client::connect(&layout.admin_conf()).await else { return Vec::new() };
    let listed = tokio::time::timeout(DEADLINE, nodes::list(&client)).await;
    let Ok(Ok(nodes)) = listed else { return Vec::new() };
    nodes
        .iter()
        .filter(|node| NodeSpec::from_node(node).is_ok_and(|spec| spec.roles.contains(&Role::Etcd)))
        .filter_map(|node| node.metadata.annotations.as_ref()?.get(CONTROL_PLANE_IP).cloned())
        .map(|ip| format!("https://{ip}:2379"))
        .collect()
}
