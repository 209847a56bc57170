//! Why etcd was not recovered, and what to do about it.

use super::cluster_nodes::{ClusterNodesError, WHILE_ETCD_WORKS};
use super::command_error::{CommandError, ErrorClass};
use super::etcd_members::EtcdMembersError;
use super::recorded_nodes::RecordedNodesError;
use super::snapshot_file::SnapshotFileError;
use crate::engine::wait::WaitError;
use crate::etcd::member::Membership;
use crate::etcd::reconnection::ReconnectionObstacle;
use crate::etcd::recovery::RecoveryObstacle;
use crate::etcd::recovery_change::RecoveryChange;
use crate::model::error_chain::error_chain;
use crate::model::name::HostName;
use crate::model::resumption::ResumedBy;
use crate::operation::member_host::MemberHostError;
use crate::workspace::host_lock::HostLockError;

/// Why etcd was not recovered.
#[derive(Debug, thiserror::Error)]
pub enum EtcdRecoverError {
    /// It is not known which nodes there are.
    #[error(transparent)]
    Nodes(#[from] RecordedNodesError),
    /// etcd's client certificate cannot be used; or etcd has lost its quorum since the plan was made.
    #[error(transparent)]
    Members(#[from] EtcdMembersError),
    /// The snapshot cannot be used.
    #[error(transparent)]
    Snapshot(#[from] SnapshotFileError),
    /// etcd has its quorum.
    #[error("etcd has its quorum: {healthy} of {voters} voting members are healthy")]
    Works {
        /// Healthy voters.
        healthy: usize,
        /// Voters.
        voters: usize,
    },
    /// It would be another plan now.
    #[error(transparent)]
    Changed(#[from] RecoveryChange),
    /// Its member was healthy when the plan was made.
    #[error("the etcd member of {0} is no healthy voter now, and was one when the plan was made")]
    Sick(HostName),
    /// None did when the plan was made.
    #[error("an API server answers now, and none did when the plan was made")]
    Served,
    /// There is nothing to continue with.
    #[error(transparent)]
    Obstacle(#[from] RecoveryObstacle),
    /// A node that was never deployed.
    #[error("{0}: no address on the control plane is recorded")]
    NoAddress(HostName),
    /// Another operation is running on a host.
    #[error(transparent)]
    Locked(#[from] HostLockError),
    /// A host failed.
    #[error("{node}: {}", error_chain(error.as_ref()))]
    Host {
        /// Its node.
        node: HostName,
        /// Why.
        error: Box<MemberHostError>,
    },
    /// etcd or the API does not answer.
    #[error("{error}")]
    Silent {
        /// What does not.
        class: ErrorClass,
        /// What was waited for.
        error: WaitError,
    },
    /// etcd has its quorum, no API server answers, and none can continue with another member of etcd.
    #[error("{error}; {obstacle}")]
    Unconnected {
        /// Why not.
        obstacle: ReconnectionObstacle<HostName>,
        /// What was waited for.
        error: WaitError,
    },
    /// No API server answers with another member of etcd than its own.
    #[error("{0}")]
    Unserved(WaitError),
    /// The control-plane nodes cannot be deployed.
    #[error("{error}")]
    Deploy {
        /// Why.
        error: ClusterNodesError,
        /// What resumes the command.
        resumed: ResumedBy,
    },
}

/// While etcd and the API answer.
const MEMBERS: &str = "`metalform expand` adds members that are missing, and repairs the manifest of one that does not \
                       start; one that has lost its data is replaced with `metalform deploy-node NAME --replace-member`";

impl EtcdRecoverError {
    pub(super) fn host(node: &HostName, error: MemberHostError) -> Self {
        Self::Host { node: node.clone(), error: Box::new(error) }
    }

    pub(super) fn works(membership: &Membership) -> Self {
        let healthy = membership.healthy_voters().count();
        Self::Works { healthy, voters: membership.voters().count() }
    }
}

impl CommandError for EtcdRecoverError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Nodes(error) => error.class(),
            Self::Members(error) => error.class(),
            Self::Snapshot(error) => error.class(),
            Self::Works { .. }
            | Self::Changed(_)
            | Self::Sick(_)
            | Self::Served
            | Self::Obstacle(_)
            | Self::Locked(HostLockError::Held { .. }) => ErrorClass::Refused,
            Self::Locked(HostLockError::File(_)) | Self::NoAddress(_) => ErrorClass::Configuration,
            Self::Host { error, .. } if error.connection().is_some() => ErrorClass::Ssh,
            Self::Host { .. } => ErrorClass::Host,
            Self::Silent { class, .. } => *class,
            Self::Unconnected { .. } | Self::Unserved(_) => ErrorClass::Api,
            Self::Deploy { error, .. } => error.class(),
        }
    }

    fn errors(&self) -> Vec<String> {
        match self {
            Self::Nodes(error) => error.errors(),
            Self::Deploy { error, .. } => error.errors(),
            other => vec![other.to_string()],
        }
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Nodes(error) => return error.hints(),
            Self::Members(error) => return error.hints(),
            Self::Snapshot(error) => return error.hints(),
            Self::Deploy { error, resumed } => {
                let mut hints = error.hints();
                hints.retain(|hint| hint != WHILE_ETCD_WORKS);
                hints.push(resumed.instruction());
                return hints;
            }
            Self::Works { .. } => {
                return vec![
                    MEMBERS.to_owned(),
                    "where no API server answers, run the same command again".to_owned(),
                ];
            }
            Self::Served => return vec!["nothing was changed".to_owned(), MEMBERS.to_owned()],
            Self::Changed(_) | Self::Sick(_) => {
                "nothing was changed; run the same command again, for a new plan"
            }
            Self::Unconnected { obstacle: ReconnectionObstacle::NotHealthy(_), .. } => {
                "nothing was changed; name the node of a healthy voter (`metalform etcd health` shows them), or omit --member"
            }
            Self::Unconnected { .. } => {
                "nothing was changed; look at /var/log/pods/kube-system_kube-apiserver-* on the nodes with the role master; \
                 where a warning names one of them, make SSH reach it, then run the same command again"
            }
            Self::Unserved(_) => {
                "look at /var/log/pods/kube-system_kube-apiserver-* on the nodes of the plan, then run the same command \
                 again, for a new plan"
            }
            Self::Obstacle(RecoveryObstacle::Running { hosts }) => {
                let nodes: Vec<&str> = hosts.iter().map(|(node, _)| node.as_str()).collect();
                return vec![format!(
                    "make SSH reach it (`metalform node check {}` shows more while the API answers), or power it off",
                    nodes.join(" ")
                )];
            }
            Self::Obstacle(RecoveryObstacle::HasLeader { .. }) => {
                "nothing was changed; `metalform etcd health` shows why it did not answer: a certificate (`metalform bootstrap` \
                 renews that of this machine), the clock, a firewall, or a slow disk"
            }
            Self::Obstacle(RecoveryObstacle::NoImage { image, .. }) => {
                return vec![format!(
                    "pull it on that host (`ctr -n k8s.io images pull --hosts-dir /etc/containerd/certs.d {image}`), \
                     or name another etcd node: --member NODE"
                )];
            }
            Self::Obstacle(RecoveryObstacle::NoData) => {
                "`metalform etcd restore FILE` makes etcd of a snapshot; or move data that a recovery has set aside back on \
                 its host (/var/lib/etcd/removed-* to /var/lib/etcd/member), then run this command again"
            }
            Self::Obstacle(RecoveryObstacle::Undecided { .. }) => {
                "start etcd on their hosts (systemctl start kubelet), or name the member: --member NODE"
            }
            Self::Obstacle(RecoveryObstacle::Clusters { .. }) => {
                "a restored snapshot begins a new cluster, whose revisions are 1000000000 ahead: name a member of the \
                 cluster that is expected to continue: --member NODE"
            }
            Self::Obstacle(RecoveryObstacle::Learner(_)) => {
                "bring the host of a voter back; or `metalform etcd restore FILE` makes etcd of a snapshot; or name the \
                 learner, to try it: --member NODE"
            }
            Self::Obstacle(_) | Self::NoAddress(_) => "name another etcd node: --member NODE",
            Self::Host { error, .. } if error.connection().is_some() => {
                "make the host reachable, then run the same command again; no data was lost"
            }
            Self::Host { error, .. } if matches!(**error, MemberHostError::TimedOut(_)) => {
                "power it off (restart it, if etcd continues with it), then run the same command again; no data was lost"
            }
            Self::Host { .. } => {
                "fix the cause, then run the same command again: it resumes, and no data was lost"
            }
            Self::Silent { .. } => "run `metalform expand` once etcd and the API answer",
            // Before anything was changed.
            Self::Locked(error) => return error.hint(ResumedBy::SameCommand).into_iter().collect(),
        };
        vec![hint.to_owned()]
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::engine::host::HostError;
    use crate::kube_api::client::{ApiCall, ApiError};
    use crate::transport::error::TransportError;

    #[test]
    fn an_api_that_goes_away_after_the_restoration_is_no_reason_to_restore_again() {
        let call = ApiCall { verb: "list", object: "nodes".to_owned() };
        let silent = ApiError::Unreachable { call, reason: "connection refused".to_owned() };
        for error in [
            ClusterNodesError::Unusable { missing: Vec::new(), wrong: Vec::new() },
            ClusterNodesError::Api(silent),
        ] {
            let hints = EtcdRecoverError::Deploy { error, resumed: ResumedBy::Expansion }.hints();
            assert!(hints.last().is_some_and(|last| last.contains("`metalform expand`")), "{hints:?}");
            assert!(!hints.concat().contains("etcd recover"), "{hints:?}");
        }
    }

    #[test]
    fn an_image_is_pulled_with_what_the_host_has() {
        let image = "registry.k8s.io/etcd:3.6.16-0".to_owned();
        let missing = RecoveryObstacle::NoImage { node: "m2".to_owned(), image };
        let expected = "pull it on that host (`ctr -n k8s.io images pull --hosts-dir /etc/containerd/certs.d \
                        registry.k8s.io/etcd:3.6.16-0`), or name another etcd node: --member NODE";
        assert_eq!(EtcdRecoverError::Obstacle(missing).hints(), [expected]);
    }

    #[test]
    fn the_hint_is_that_of_the_cause() {
        let lost = TransportError::Lost { host: "192.0.2.2:22".to_owned(), reason: "reset".to_owned() };
        let failed = HostError::Failed {
            resources: vec!["etcd-data:recover".to_owned()],
            status: 1,
            output: "ctr: image not found".to_owned(),
        };
        for (error, hint) in [
            (MemberHostError::Host(HostError::Transport(lost)), "make the host reachable"),
            (MemberHostError::Host(failed), "fix the cause"),
            (MemberHostError::TimedOut(Duration::from_secs(300)), "power it off"),
        ] {
            let node: HostName = "m2".parse().unwrap();
            let hints = EtcdRecoverError::host(&node, error).hints();
            assert!(matches!(&*hints, [only] if only.starts_with(hint)), "{hints:?}");
        }
    }
}
