//! `etcd members`, `etcd health`: observes every member of etcd.

use std::sync::Arc;

use super::command_error::{CommandError, ErrorClass};
use crate::etcd::client::{ClientError, DEADLINE, EtcdAccess, EtcdCredentials};
use crate::etcd::member::{Alarm, AlarmKind, Member, Membership};
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
        let hint = match self {
            Self::Credentials(_) => "run this command as root on the bootstrap node",
            Self::Observe(ClientError::NoAnswer { .. }) => {
                return vec![
                    "where the reason is a certificate, check the clock (date), and run `metalform bootstrap`, which renews it"
                        .to_owned(),
                    "start the hosts of its members, or restore the network to them; where most members are gone for good, \
                     `metalform etcd recover --dry-run` shows what can be kept"
                        .to_owned(),
                ];
            }
            Self::Observe(ClientError::NoEndpoint | ClientError::Unreadable { .. }) => return Vec::new(),
        };
        vec![hint.to_owned()]
    }
}

/// What clears the alarm NOSPACE.
pub(super) const DEFRAGMENT: &str = "`metalform etcd defragment` forgets old revisions, returns the free space and \
                                     clears the alarm; if it comes again, find what writes so much";
/// The static pod's files, and what starts it.
const MEMBER_LOGS: &str =
    "look at /var/log/pods/kube-system_etcd-* and `journalctl -u kubelet` on the node of the member";

/// Members that are not healthy, and alarms; at least one of either.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines(members, alarms).join("; "))]
pub struct UnhealthyEtcd {
    /// One line for each member.
    members: Vec<String>,
    alarms: Vec<Alarm>,
}

fn lines(members: &[String], alarms: &[Alarm]) -> Vec<String> {
    let alarm =
        |alarm: &Alarm| format!("etcd has the alarm {} for member {:x}", alarm.kind.name(), alarm.member);
    members.iter().cloned().chain(alarms.iter().map(alarm)).collect()
}

impl CommandError for UnhealthyEtcd {
    fn class(&self) -> ErrorClass {
        ErrorClass::Etcd
    }

    fn errors(&self) -> Vec<String> {
        lines(&self.members, &self.alarms)
    }

    fn hints(&self) -> Vec<String> {
        let is_full = |alarm: &Alarm| alarm.kind == AlarmKind::NoSpace;
        let full = self.alarms.iter().any(is_full).then(|| DEFRAGMENT.to_owned());
        let sick = !self.members.is_empty() || !self.alarms.iter().all(is_full);
        full.into_iter().chain(sick.then(|| MEMBER_LOGS.to_owned())).collect()
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
    let complaint = |voter: &Member| {
        voter.health.complaint().map(|reason| format!("etcd member {}: {reason}", voter.title()))
    };
    let members: Vec<String> = membership.voters().filter_map(complaint).collect();
    let alarms = membership.alarms.clone();
    if members.is_empty() && alarms.is_empty() { Ok(()) } else { Err(UnhealthyEtcd { members, alarms }) }
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
    use crate::etcd::member::Health;
    use crate::model::api_contract::{CONTROL_PLANE_IP, SSH_HOST};
    use crate::model::node::NodeMetadata;

    #[test]
    fn the_bootstrap_node_is_named_where_keys_are_missing_and_recovery_where_the_quorum_is() {
        let path = "/etc/metalform/pki/etcd/ca.crt".into();
        let missing = ClientError::Unreadable { path, source: std::io::ErrorKind::NotFound.into() };
        let hints = EtcdMembersError::Credentials(missing).hints();
        assert_eq!(hints, ["run this command as root on the bootstrap node"]);
        let tried = vec!["https://127.0.0.1:2379: connection refused".to_owned()];
        let hints = EtcdMembersError::Observe(ClientError::NoAnswer { tried }).hints();
        assert!(
            matches!(&*hints, [certificate, lost] if certificate.contains("`metalform bootstrap`")
                && lost.contains("`metalform etcd recover --dry-run`")),
            "{hints:?}"
        );
        assert!(EtcdMembersError::Observe(ClientError::NoEndpoint).hints().is_empty());
    }

    #[test]
    fn a_member_is_looked_at_and_a_full_database_is_defragmented() {
        let silent = Member {
            id: 1,
            name: "etcd-1".to_owned(),
            peer_urls: Vec::new(),
            client_urls: Vec::new(),
            is_learner: false,
            health: Health::Unknown { reason: "no answer".to_owned() },
        };
        let full = Alarm { member: 0x2a, kind: AlarmKind::NoSpace };
        let corrupt = Alarm { member: 0x2a, kind: AlarmKind::Corrupt };
        let no_answer = "etcd member etcd-1: no answer";
        let no_space = "etcd has the alarm NOSPACE for member 2a";
        let differs = "etcd has the alarm CORRUPT for member 2a";
        let cases = [
            (vec![silent.clone()], vec![], vec![no_answer], vec![MEMBER_LOGS]),
            (vec![], vec![full.clone()], vec![no_space], vec![DEFRAGMENT]),
            (vec![], vec![corrupt], vec![differs], vec![MEMBER_LOGS]),
            (vec![silent], vec![full], vec![no_answer, no_space], vec![DEFRAGMENT, MEMBER_LOGS]),
        ];
        for (members, alarms, errors, hints) in cases {
            let unhealthy = health(&Membership { cluster_id: 1, members, alarms }).unwrap_err();
            assert_eq!(unhealthy.errors(), errors);
            assert_eq!(unhealthy.hints(), hints);
        }
        health(&Membership { cluster_id: 1, members: Vec::new(), alarms: Vec::new() }).unwrap();
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
