//! `etcd recover` and `etcd restore`: etcd continues with the data of one member, or with a snapshot, and the other members
//! join it again. Where etcd has its quorum, see [`etcd_reconnect`].
//!
//! # Order
//! That of [`order`]. Every other member is stopped first and its data set aside: no two of them can agree behind the one
//! that continues. Then that one becomes the only member. The API serves again, and the control-plane nodes are deployed as
//! always: each copy joins as a learner. A run that ends is resumed by the same command, and by `metalform expand` once
//! etcd works: what is written from then on is lost where a snapshot is restored a second time.

use std::mem::take;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;

use super::command_error::ErrorClass;
use super::deploy::DeployReport;
use super::etcd_members::{self, EtcdMembersError};
use super::etcd_reconnect::{self, PreparedReconnection, patience};
use super::etcd_recover_error::EtcdRecoverError;
use super::etcd_recovery_run::{RecoveryRun, acted, api_answers, host, phase, waiting};
use super::recorded_nodes;
use super::snapshot_file::{self, SnapshotFile, SnapshotFileError};
use crate::engine::cancel::Cancel;
use crate::engine::wait::{WaitStatus, wait_for};
use crate::etcd::client::EtcdAccess;
use crate::etcd::member::Membership;
use crate::etcd::recovery::{self, DiskState, MemberOnDisk, RecoveryObstacle, RecoveryPlan};
use crate::etcd::recovery_change::unchanged;
use crate::etcd::recovery_order::{RecoveryStep, Stopped, order};
use crate::model::error_chain::error_chain;
use crate::model::name::HostName;
use crate::model::node::NodeSpec;
use crate::model::role::Role;
use crate::operation::cluster_site::Workspace;
use crate::operation::goal::{client_url, peer_url};
use crate::operation::member_host::SoleMember;

/// How long etcd, and then the API, may take to answer.
const LIMIT: Duration = Duration::from_secs(300);
/// Longer than two election timeouts.
const ELECTION: Duration = Duration::from_secs(5);

/// What etcd shall continue with.
#[derive(Debug, Clone)]
pub struct RecoverRequest {
    /// A snapshot; without one the data of a member.
    pub snapshot: Option<PathBuf>,
    /// The node of the member; without one, that of the member that has come furthest, while etcd has its quorum that of
    /// a healthy voter, and for a snapshot this machine.
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
    /// The node whose member was asked for.
    named: Option<HostName>,
    run: RecoveryRun,
}

/// What to decide on. Nothing was changed yet.
#[derive(Debug)]
pub enum Prepared {
    /// etcd continues, alone on one node.
    Recovery(PreparedRecovery),
    /// etcd has its quorum, and API servers continue with it.
    Reconnection(PreparedReconnection),
}

impl Prepared {
    /// The node with whose member all else continues.
    pub fn member(&self) -> &HostName {
        match self {
            Self::Recovery(prepared) => &prepared.plan.survivor.node,
            Self::Reconnection(prepared) => &prepared.plan.member,
        }
    }

    /// Carries it out.
    ///
    /// # Errors
    /// Those of [`PreparedRecovery::carry_out`] and [`PreparedReconnection::carry_out`].
    pub async fn carry_out(
        self,
        workspace: Arc<Workspace>,
        cancel: &Cancel,
    ) -> Result<DeployReport, EtcdRecoverError> {
        match self {
            Self::Recovery(prepared) => prepared.carry_out(workspace, cancel).await,
            Self::Reconnection(prepared) => prepared.carry_out(workspace, cancel).await,
        }
    }
}

/// Looks at every etcd node, and decides what to continue with. Changes nothing.
///
/// # Errors
/// While etcd has its quorum (but for a snapshot) and an API server uses it; and when there is nothing to continue with.
pub async fn prepare(
    request: &RecoverRequest,
    workspace: &Workspace,
    cancel: &Cancel,
) -> Result<Prepared, EtcdRecoverError> {
    let snapshot = request.snapshot.as_deref().map(snapshot_file::open).transpose()?;
    let specs = recorded_nodes::current(&workspace.layout).await?;
    let named = request.member.as_ref();
    let run = RecoveryRun { specs, limit: request.limit, lock_wait: request.lock_wait };
    let working = working(workspace, &run).await?;
    if let (None, Some(membership)) = (&snapshot, &working) {
        let this = &workspace.subject.name;
        let answers = api_answers(workspace, this, patience(&run.specs, membership)).await;
        let Err(error) = answers else { return Err(EtcdRecoverError::works(membership)) };
        let prepared = etcd_reconnect::prepare(named, membership.clone(), run, workspace, cancel).await;
        let unconnected = |obstacle| EtcdRecoverError::Unconnected { obstacle, error };
        return prepared.map(Prepared::Reconnection).map_err(unconnected);
    }
    let members = match &snapshot {
        None => inspect_lost(workspace, &run, cancel).await?,
        Some(_) => inspect(workspace, &run, cancel).await?,
    };
    let named = match &snapshot {
        None => request.member.clone(),
        Some(_) => Some(request.member.clone().unwrap_or_else(|| workspace.subject.name.clone())),
    };
    let plan = planned(&members, named.as_ref(), snapshot.is_some())?;
    Ok(Prepared::Recovery(PreparedRecovery { plan, snapshot, working, named, run }))
}

/// A snapshot is for the node that is named.
fn planned(
    members: &[MemberOnDisk<HostName>],
    named: Option<&HostName>,
    restores: bool,
) -> Result<RecoveryPlan<HostName>, RecoveryObstacle> {
    match named.map(HostName::as_str) {
        Some(node) if restores => recovery::plan_restore(members, node),
        named => recovery::plan(members, named),
    }
}

/// etcd as it works now, if it does.
async fn working(workspace: &Workspace, run: &RecoveryRun) -> Result<Option<Membership>, EtcdMembersError> {
    Ok(run.access(workspace)?.observe().await.ok())
}

/// [`inspect`], once the last leader has been given up, which takes a moment after quorum was lost.
async fn inspect_lost(
    workspace: &Workspace,
    run: &RecoveryRun,
    cancel: &Cancel,
) -> Result<Vec<MemberOnDisk<HostName>>, EtcdRecoverError> {
    let lost = wait_for("the voters of etcd to have no leader", ELECTION, || async {
        match inspect(workspace, run, cancel).await {
            Ok(members) => match recovery::quorum_is_lost(&members) {
                Ok(()) => WaitStatus::Holds(Ok(members)),
                Err(led) => WaitStatus::NotYet(led.to_string()),
            },
            Err(error) => WaitStatus::Holds(Err(error)),
        }
    });
    match lost.await {
        Ok(inspected) => inspected,
        // What is refused then names them.
        Err(_) => inspect(workspace, run, cancel).await,
    }
}

/// The hosts of etcd; and those of API servers without it that do not answer.
async fn inspect(
    workspace: &Workspace,
    run: &RecoveryRun,
    cancel: &Cancel,
) -> Result<Vec<MemberOnDisk<HostName>>, EtcdRecoverError> {
    let access = run.access(workspace)?;
    let has = |spec: &NodeSpec, role| spec.roles.contains(&role);
    let inspected = run.specs.iter().filter(|spec| has(spec, Role::Etcd) || has(spec, Role::Master));
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
    /// When etcd has its quorum again (but for a snapshot), when it would be another plan, and at the first step that
    /// fails. Data that was replaced stays on its host. Failures of nodes that join again are in the report.
    pub async fn carry_out(
        self,
        workspace: Arc<Workspace>,
        cancel: &Cancel,
    ) -> Result<DeployReport, EtcdRecoverError> {
        let survivor = self.run.spec(&self.plan.survivor.node)?;
        let address =
            survivor.control_plane_ip.ok_or_else(|| EtcdRecoverError::NoAddress(survivor.name.clone()))?;
        let image = self.plan.survivor.pod().map(|pod| pod.image.clone());
        let member = SoleMember {
            name: survivor.name.to_string(),
            peer_url: peer_url(address),
            image: image.ok_or_else(|| RecoveryObstacle::NoPod(survivor.name.to_string()))?,
        };
        let masters = self.run.specs.iter().filter(|spec| spec.roles.contains(&Role::Master));
        let masters: Vec<HostName> = masters.map(|spec| spec.name.clone()).collect();
        let order = order(&self.plan, &masters);
        let locked = self.run.lock(&order.deployed, &workspace, cancel).await?;
        let mut snapshot = Vec::new();
        for step in &order.steps {
            let url = client_url(address);
            let done = self.step(step, (&member, url, &mut snapshot), &workspace, cancel);
            phase(&workspace, (&survivor.name, step.title()), done).await?;
        }
        drop(locked);
        self.run.deploy(order.deployed, false, workspace, cancel).await
    }

    /// `url` is that of the member that etcd continues with.
    async fn step(
        &self,
        step: &RecoveryStep<HostName>,
        (member, url, snapshot): (&SoleMember, String, &mut Vec<u8>),
        workspace: &Workspace,
        cancel: &Cancel,
    ) -> Result<(), EtcdRecoverError> {
        match step {
            RecoveryStep::VerifyPlan => self.verify_plan(workspace, cancel).await,
            RecoveryStep::Stop { others, api_servers } => {
                let url = api_servers.as_ref().map(|_| url.as_str());
                self.stop((others, url), workspace, cancel).await
            }
            RecoveryStep::ReadSnapshot => {
                *snapshot = self.read_snapshot()?;
                Ok(())
            }
            RecoveryStep::Continue(node) => {
                self.go_on((node, member), take(snapshot), workspace, cancel).await
            }
            RecoveryStep::AwaitEtcd(node) => etcd_answers(workspace, node, url).await,
            RecoveryStep::AwaitApi(node) => {
                let answers = api_answers(workspace, node, LIMIT).await;
                answers.map_err(|error| EtcdRecoverError::Silent { class: ErrorClass::Api, error })
            }
        }
    }

    async fn verify_plan(&self, workspace: &Workspace, cancel: &Cancel) -> Result<(), EtcdRecoverError> {
        let restores = self.snapshot.is_some();
        if !restores && let Some(membership) = working(workspace, &self.run).await? {
            return Err(EtcdRecoverError::works(&membership));
        }
        let members = inspect(workspace, &self.run, cancel).await?;
        Ok(unchanged(&self.plan, &planned(&members, self.named.as_ref(), restores)?)?)
    }

    async fn stop(
        &self,
        (others, url): (&[(HostName, Stopped)], Option<&str>),
        workspace: &Workspace,
        cancel: &Cancel,
    ) -> Result<(), EtcdRecoverError> {
        let stopped = join_all(others.iter().map(async |(node, what)| {
            let remote = host(workspace, self.run.spec(node)?, cancel);
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
        let remote = host(workspace, self.run.spec(node)?, cancel);
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
