//! `etcd members`, `etcd health`: observes every member of etcd.

use std::sync::Arc;

use super::command_error::{CommandError, ErrorClass};
use crate::etcd::client::{ClientError, DEADLINE, EtcdAccess, EtcdCredentials};
use crate::etcd::member::Membership;
use crate::kube_api::client::{self, ApiError};
use crate::kube_api::nodes;
use crate::model::error_chain::error_chain;
use crate::model::node::NodeManifest;
use crate::operation::goal::member_urls;
use crate::workspace::layout::Layout;
use crate::workspace::node_records;

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

/// The static pod's files, and what starts it.
const MEMBER_LOGS: &str =
    "look at /var/log/pods/kube-system_etcd-* and `journalctl -u kubelet` on the node of the member";

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
        vec![MEMBER_LOGS.to_owned()]
    }
}

/// Asks the members on this machine and on all other etcd nodes: those of the API, and of the records while it does not
/// answer.
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

/// Members on other nodes; where the API does not answer in time, those of the Nodes that are recorded. Neither is an
/// error: etcd is looked at above all then, and this machine may have a member of its own.
async fn other_endpoints(layout: &Layout) -> Vec<String> {
    let manifests = match tokio::time::timeout(DEADLINE, listed(layout)).await {
        Ok(Ok(manifests)) => manifests,
        Ok(Err(_)) | Err(_) => node_records::read(layout).unwrap_or_default(),
    };
    member_urls(&manifests)
}

async fn listed(layout: &Layout) -> Result<Vec<NodeManifest>, ApiError> {
    let client = client::connect_without_retry(&layout.admin_conf()).await?;
    Ok(nodes::list(&client).await?.iter().map(NodeManifest::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::api_contract::{CONTROL_PLANE_IP, SSH_HOST};
    use crate::model::node::NodeMetadata;

    #[test]
    fn a_member_is_checked_with_what_its_node_has() {
        let hints = UnhealthyEtcd(vec!["etcd member etcd-1: no answer".to_owned()]).hints();
        assert_eq!(hints, [MEMBER_LOGS]);
    }

    #[tokio::test]
    async fn without_an_api_the_members_of_recorded_nodes_are_reached() {
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::below(root.path());
        assert_eq!(other_endpoints(&layout).await, Vec::<String>::new(), "no cluster yet");
        let manifest = |name: &str, role: &str, address: &str| {
            let annotations = [(SSH_HOST, address), (CONTROL_PLANE_IP, address)];
            let metadata = NodeMetadata {
                name: Some(name.to_owned()),
                labels: [(format!("node-role.kubernetes.io/{role}"), String::new())].into(),
                annotations: annotations.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            };
            NodeManifest { metadata, ..NodeManifest::default() }
        };
        let manifests = [
            manifest("bootstrap", "master", "192.0.2.1"),
            manifest("etcd-1", "etcd", "192.0.2.2"),
            manifest("etcd-2", "etcd", "2001:db8::3"),
        ];
        std::fs::create_dir_all(layout.node_records().parent().unwrap()).unwrap();
        node_records::save(&layout, &manifests).unwrap();
        assert_eq!(other_endpoints(&layout).await, ["https://192.0.2.2:2379", "https://[2001:db8::3]:2379"]);
    }
}
