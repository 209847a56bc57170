//! `etcd recover` and `etcd restore`: etcd continues with the data of one member, or with a snapshot, and the other members
//! join it again.
//!
//! # Order
//! That of [`order`]. Every other member is stopped first and its data set aside: no two of them can agree behind the one
//! that continues. Then that one becomes the only member. The API serves again, and the control-plane nodes are deployed as
//! always: each copy joins as a learner. A run that ends is resumed by the same command, and by `metalform expand` once
//! etcd works: what is written from then on is lost where a snapshot is restored a second time.

use std::collections::BTreeSet;
use std::mem::take;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;

use super::cluster_nodes::{self, ClusterNodesError};
use super::command_error::{CommandError, ErrorClass};
use super::deploy::{DeployReport, DeployRequest, Foreseen, deploy_selected};
use super::etcd_members::{self, EtcdMembersError};
use super::host_turn::HostTurn;
use super::node_selection::NodeSelection;
use super::operation_failure::OperationFailure;
use super::operation_report::{RunOptions, set_aside};
use super::recorded_nodes::{self, RecordedNodesError};
use super::snapshot_file::{self, SnapshotFile, SnapshotFileError};
use crate::engine::cancel::Cancel;
use crate::engine::share::{Share, UPLOADS};
use crate::engine::wait::{WaitError, WaitStatus, wait_for};
use crate::etcd::client::EtcdAccess;
use crate::etcd::member::Membership;
use crate::etcd::recovery::{self, DiskState, MemberOnDisk, RecoveryObstacle, RecoveryPlan};
use crate::etcd::recovery_order::{RecoveryOrder, RecoveryStep, Stopped, order};
use crate::kube_api::{client, nodes};
use crate::model::error_chain::error_chain;
use crate::model::event::Event;
use crate::model::name::HostName;
use crate::model::node::NodeSpec;
use crate::model::resumption::ResumedBy;
use crate::model::role::Role;
use crate::operation::cluster_site::{PeerHosts, PooledHosts, Workspace};
use crate::operation::goal::{client_url, peer_url};
use crate::operation::member_host::{MemberHost, MemberHostError, SoleMember};
use crate::workspace::host_lock::{HostLock, HostLockError};

/// How long etcd, and then the API, may take to answer.
const LIMIT: Duration = Duration::from_secs(300);

/// What etcd shall continue with.
#[derive(Debug, Clone)]
pub struct RecoverRequest {
    /// A snapshot; without one the data of a member.
    pub snapshot: Option<PathBuf>,
    /// The node of the member; without one, that of the member that has come furthest, and for a snapshot this machine.
    pub member: Option<HostName>,
    /// Hosts to work on at the same time, once etcd works.
    pub limit: NonZeroUsize,
    /// How long to wait for other operations on the nodes.
    pub lock_wait: Duration,
}

/// A recovery to decide on. Nothing was changed yet.
#[derive(Debug)]
pub struct PreparedRecovery {
    /// What is to be done.
    pub plan: RecoveryPlan<HostName>,
    /// The snapshot, if etcd continues with one.
    pub snapshot: Option<SnapshotFile>,
    /// etcd as it works now, if it does.
    pub working: Option<Membership>,
    specs: Vec<NodeSpec>,
    limit: NonZeroUsize,
    lock_wait: Duration,
}

/// Why etcd was not recovered.
#[derive(Debug, thiserror::Error)]
pub enum EtcdRecoverError {
    /// It is not known which nodes there are.
    #[error(transparent)]
    Nodes(#[from] RecordedNodesError),
    /// etcd's client certificate cannot be used.
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
    /// Its host was silent when the plan was made.
    #[error("{0} answers now, and did not when the plan was made")]
    CameBack(HostName),
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
    /// The control-plane nodes cannot be deployed.
    #[error(transparent)]
    Deploy(#[from] ClusterNodesError),
}

impl EtcdRecoverError {
    fn host(node: &HostName, error: MemberHostError) -> Self {
        Self::Host { node: node.clone(), error: Box::new(error) }
    }
}

impl CommandError for EtcdRecoverError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Nodes(error) => error.class(),
            Self::Members(error) => error.class(),
            Self::Snapshot(error) => error.class(),
            Self::Works { .. }
            | Self::CameBack(_)
            | Self::Obstacle(_)
            | Self::Locked(HostLockError::Held { .. }) => ErrorClass::Refused,
            Self::Locked(HostLockError::File(_)) | Self::NoAddress(_) => ErrorClass::Configuration,
            Self::Host { error, .. } if error.connection().is_some() => ErrorClass::Ssh,
            Self::Host { .. } => ErrorClass::Host,
            Self::Silent { class, .. } => *class,
            Self::Deploy(error) => error.class(),
        }
    }

    fn errors(&self) -> Vec<String> {
        match self {
            Self::Nodes(error) => error.errors(),
            Self::Deploy(error) => error.errors(),
            other => vec![other.to_string()],
        }
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Nodes(error) => return error.hints(),
            Self::Members(error) => return error.hints(),
            Self::Snapshot(error) => return error.hints(),
            Self::Deploy(error) => {
                let mut hints = error.hints();
                hints.push(ResumedBy::Expansion.instruction());
                return hints;
            }
            Self::Works { .. } => {
                "`metalform expand` adds members that are missing; one that does not work is replaced with `metalform \
                 deploy-node NAME --replace-member`"
            }
            Self::CameBack(_) => {
                "nothing was changed; run the same command again, for a plan that includes it"
            }
            Self::Obstacle(RecoveryObstacle::Running { hosts }) => {
                let nodes: Vec<&str> = hosts.iter().map(|(node, _)| node.as_str()).collect();
                return vec![format!(
                    "make SSH reach it (`metalform node check {}` shows more while the API answers), or power it off",
                    nodes.join(" ")
                )];
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

/// Looks at every etcd node, and decides what to continue with. Changes nothing.
///
/// # Errors
/// While etcd has its quorum (but for a snapshot), once the API answers; and when there is nothing to continue with.
pub async fn prepare(
    request: &RecoverRequest,
    workspace: &Workspace,
    cancel: &Cancel,
) -> Result<PreparedRecovery, EtcdRecoverError> {
    let snapshot = request.snapshot.as_deref().map(snapshot_file::open).transpose()?;
    let specs = recorded_nodes::current(&workspace.layout).await?;
    let working = working(workspace, &specs).await?;
    if let (None, Some(membership)) = (&snapshot, &working) {
        // A run that was killed may have made it work a moment ago. The command that is named needs the API.
        api_answers(workspace, &workspace.subject.name).await?;
        return Err(works(membership));
    }
    let members = inspect(workspace, &specs, cancel).await?;
    let named = request.member.as_ref().map(HostName::as_str);
    let plan = match &snapshot {
        None => recovery::plan(&members, named)?,
        Some(_) => recovery::plan_restore(&members, named.unwrap_or(workspace.subject.name.as_str()))?,
    };
    let (limit, lock_wait) = (request.limit, request.lock_wait);
    Ok(PreparedRecovery { plan, snapshot, working, specs, limit, lock_wait })
}

/// etcd as it works now, if it does.
async fn working(workspace: &Workspace, specs: &[NodeSpec]) -> Result<Option<Membership>, EtcdMembersError> {
    Ok(access(workspace, specs)?.observe().await.ok())
}

fn access(workspace: &Workspace, specs: &[NodeSpec]) -> Result<EtcdAccess, EtcdMembersError> {
    let etcd = specs.iter().filter(|spec| spec.roles.contains(&Role::Etcd));
    let urls = etcd.filter_map(|spec| spec.control_plane_ip).map(client_url).collect();
    etcd_members::access(&workspace.layout, urls)
}

fn works(membership: &Membership) -> EtcdRecoverError {
    let healthy = membership.voters().filter(|voter| voter.status().is_some()).count();
    EtcdRecoverError::Works { healthy, voters: membership.voters().count() }
}

/// The hosts of etcd; and those of API servers without it that do not answer.
async fn inspect(
    workspace: &Workspace,
    specs: &[NodeSpec],
    cancel: &Cancel,
) -> Result<Vec<MemberOnDisk<HostName>>, EtcdRecoverError> {
    let access = access(workspace, specs)?;
    let has = |spec: &NodeSpec, role| spec.roles.contains(&role);
    let inspected = specs.iter().filter(|spec| has(spec, Role::Etcd) || has(spec, Role::Master));
    let inspected = join_all(inspected.map(async |spec| {
        let state = look(spec, &access, workspace, cancel).await;
        let counts = has(spec, Role::Etcd) || !matches!(state, DiskState::Reached { .. });
        counts.then(|| MemberOnDisk { node: spec.name.clone(), state })
    }))
    .await;
    Ok(inspected.into_iter().flatten().collect())
}

/// One host over SSH; and its member, which may run where SSH does not reach it.
async fn look(spec: &NodeSpec, access: &EtcdAccess, workspace: &Workspace, cancel: &Cancel) -> DiskState {
    let inspected = host(workspace, spec, cancel).inspect().await;
    let position = match spec.control_plane_ip {
        Some(address) => recovery::log_position(access, &client_url(address)).await.ok(),
        None => None,
    };
    DiskState::found(inspected.map_err(|error| error_chain(&error)), position)
}

impl PreparedRecovery {
    /// Carries it out.
    ///
    /// # Errors
    /// When etcd has its quorum again (but for a snapshot), when a host answers again, and at the first step that fails. Data
    /// that was replaced stays on its host. Failures of nodes that join again are in the report.
    pub async fn carry_out(
        self,
        workspace: Arc<Workspace>,
        cancel: &Cancel,
    ) -> Result<DeployReport, EtcdRecoverError> {
        let survivor = self.spec(&self.plan.survivor.node)?;
        let address =
            survivor.control_plane_ip.ok_or_else(|| EtcdRecoverError::NoAddress(survivor.name.clone()))?;
        let image = self.plan.survivor.pod().map(|pod| pod.image.clone());
        let member = SoleMember {
            name: survivor.name.to_string(),
            peer_url: peer_url(address),
            image: image.ok_or_else(|| RecoveryObstacle::NoPod(survivor.name.to_string()))?,
        };
        let masters = self.specs.iter().filter(|spec| spec.roles.contains(&Role::Master));
        let masters: Vec<HostName> = masters.map(|spec| spec.name.clone()).collect();
        let order = order(&self.plan, &masters);
        let locked = self.lock(&order, &workspace, cancel).await?;
        let mut snapshot = Vec::new();
        for step in &order.steps {
            match step {
                RecoveryStep::VerifyLost => {
                    if let Some(membership) = working(&workspace, &self.specs).await? {
                        return Err(works(&membership));
                    }
                }
                RecoveryStep::VerifySilent(nodes) => self.verify_silent(nodes, &workspace, cancel).await?,
                RecoveryStep::Stop { others, api_servers } => {
                    let url = api_servers.as_ref().map(|_| client_url(address));
                    self.stop((others, url.as_deref()), &workspace, cancel).await?;
                }
                RecoveryStep::ReadSnapshot => snapshot = self.read_snapshot()?,
                RecoveryStep::Continue(node) => {
                    self.go_on((node, &member), take(&mut snapshot), &workspace, cancel).await?;
                }
                RecoveryStep::AwaitEtcd(node) => {
                    etcd_answers(&workspace, node, client_url(address)).await?;
                }
                RecoveryStep::AwaitApi(node) => api_answers(&workspace, node).await?,
            }
        }
        drop(locked);
        let names: BTreeSet<HostName> = order.deployed.into_iter().collect();
        let request = DeployRequest {
            nodes: NodeSelection::Named(names.clone()),
            // etcd and the API serve: a snapshot that is restored once more takes back what is written from now on.
            run: RunOptions { dry_run: false, lock_wait: self.lock_wait, resumed: ResumedBy::Expansion },
            replace_member: false,
            replace_machine: false,
            limit: self.limit,
        };
        let selected = request.nodes.among(&cluster_nodes::list(&workspace.layout).await?);
        // A snapshot may be of before they were added; the others join all the same.
        let missing: Vec<HostName> = names.difference(&selected.names()).cloned().collect();
        let mut report =
            deploy_selected(selected, &Foreseen::new(), &request, workspace.clone(), cancel).await;
        let unknown =
            |name: HostName| set_aside(&workspace, name.clone(), OperationFailure::NoNode(name), false);
        report.nodes.extend(missing.into_iter().map(unknown));
        Ok(report)
    }

    /// In the order of names, so that of two commands that wait for each other's hosts one goes on.
    async fn lock(
        &self,
        order: &RecoveryOrder<HostName>,
        workspace: &Workspace,
        cancel: &Cancel,
    ) -> Result<Vec<HostLock>, EtcdRecoverError> {
        let nodes: BTreeSet<&HostName> = order.deployed.iter().collect();
        let mut locks = Vec::new();
        for node in nodes {
            locks.push(HostTurn::new(workspace, node, self.lock_wait).take(cancel).await?);
        }
        Ok(locks)
    }

    fn spec(&self, name: &HostName) -> Result<&NodeSpec, EtcdRecoverError> {
        let found = self.specs.iter().find(|spec| spec.name == *name);
        found.ok_or_else(|| RecoveryObstacle::NotReached(name.to_string()).into())
    }

    async fn verify_silent(
        &self,
        nodes: &[HostName],
        workspace: &Workspace,
        cancel: &Cancel,
    ) -> Result<(), EtcdRecoverError> {
        let access = access(workspace, &self.specs)?;
        let looked = join_all(nodes.iter().map(async |node| {
            match look(self.spec(node)?, &access, workspace, cancel).await {
                DiskState::Unreachable { .. } => Ok(()),
                DiskState::Running { .. } | DiskState::Reached { .. } => {
                    Err(EtcdRecoverError::CameBack(node.clone()))
                }
            }
        }))
        .await;
        looked.into_iter().collect()
    }

    async fn stop(
        &self,
        (others, url): (&[(HostName, Stopped)], Option<&str>),
        workspace: &Workspace,
        cancel: &Cancel,
    ) -> Result<(), EtcdRecoverError> {
        let stopped = join_all(others.iter().map(async |(node, what)| {
            let remote = host(workspace, self.spec(node)?, cancel);
            let done = match what {
                Stopped::Member => {
                    acted(workspace, node, "stop etcd and the control plane, set the data of etcd aside");
                    remote.set_aside(url).await
                }
                Stopped::ControlPlane => {
                    acted(workspace, node, "stop the control plane");
                    remote.stop_control_plane(url).await
                }
            };
            done.map_err(|error| EtcdRecoverError::host(node, error))
        }))
        .await;
        stopped.into_iter().collect()
    }

    /// Nothing where there is none.
    fn read_snapshot(&self) -> Result<Vec<u8>, SnapshotFileError> {
        self.snapshot.as_ref().map_or(Ok(Vec::new()), SnapshotFile::read)
    }

    async fn go_on(
        &self,
        (node, member): (&HostName, &SoleMember),
        snapshot: Vec<u8>,
        workspace: &Workspace,
        cancel: &Cancel,
    ) -> Result<(), EtcdRecoverError> {
        let remote = host(workspace, self.spec(node)?, cancel);
        let began = match &self.snapshot {
            None => {
                acted(workspace, node, "make its etcd member the only one");
                remote.recover(member).await
            }
            Some(_) => {
                acted(workspace, node, "make an etcd member of the snapshot, the only one");
                remote.restore(member, snapshot).await
            }
        };
        began.map_err(|error| EtcdRecoverError::host(node, error))
    }
}

async fn etcd_answers(workspace: &Workspace, node: &HostName, url: String) -> Result<(), EtcdRecoverError> {
    let access = etcd_members::access(&workspace.layout, vec![url])?;
    waiting(workspace, node, "etcd to answer");
    wait_for("etcd to answer", LIMIT, || async {
        match access.observe().await {
            Ok(_) => WaitStatus::Holds(()),
            Err(error) => WaitStatus::NotYet(error_chain(&error)),
        }
    })
    .await
    .map_err(|error| EtcdRecoverError::Silent { class: ErrorClass::Etcd, error })
}

async fn api_answers(workspace: &Workspace, node: &HostName) -> Result<(), EtcdRecoverError> {
    waiting(workspace, node, "the API to answer");
    wait_for("the API to answer", LIMIT, || async {
        let listed = async {
            nodes::list(&client::connect_without_retry(&workspace.layout.admin_conf()).await?).await
        };
        match listed.await {
            Ok(_) => WaitStatus::Holds(()),
            Err(error) => WaitStatus::NotYet(error_chain(&error)),
        }
    })
    .await
    .map_err(|error| EtcdRecoverError::Silent { class: ErrorClass::Api, error })
}

fn host(workspace: &Workspace, spec: &NodeSpec, cancel: &Cancel) -> MemberHost {
    let share = Share::new(cancel.clone(), UPLOADS);
    MemberHost(PooledHosts { pool: workspace.pool.clone(), share }.host(spec))
}

fn acted(workspace: &Workspace, host: &HostName, action: &str) {
    (workspace.report)(Event::Acted { host: host.clone(), action: action.to_owned() });
}

fn waiting(workspace: &Workspace, host: &HostName, condition: &str) {
    (workspace.report)(Event::Waiting {
        host: host.clone(),
        condition: condition.to_owned(),
        last_seen: String::new(),
        elapsed: Duration::ZERO,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::host::HostError;
    use crate::transport::error::TransportError;

    #[test]
    fn an_api_that_goes_away_after_the_restoration_is_no_reason_to_restore_again() {
        let error = ClusterNodesError::Unusable { missing: Vec::new(), wrong: Vec::new() };
        let hints = EtcdRecoverError::Deploy(error).hints();
        assert!(matches!(&*hints, [only] if only.contains("`metalform expand`")), "{hints:?}");
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
