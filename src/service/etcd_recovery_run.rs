//! What a recovery of etcd does with its nodes, whatever etcd continues with: they are locked, reached, and at the end
//! deployed.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::cluster_nodes;
use super::deploy::{DeployReport, DeployRequest, Foreseen, deploy_selected};
use super::etcd_members::{self, EtcdMembersError};
use super::etcd_recover_error::EtcdRecoverError;
use super::host_turn::HostTurn;
use super::node_selection::NodeSelection;
use super::operation_failure::OperationFailure;
use super::operation_report::{RunOptions, set_aside};
use crate::engine::cancel::Cancel;
use crate::engine::share::{Share, UPLOADS};
use crate::engine::wait::{WaitError, WaitStatus, wait_for};
use crate::etcd::client::EtcdAccess;
use crate::etcd::member::Membership;
use crate::etcd::recovery::RecoveryObstacle;
use crate::kube_api::{client, nodes};
use crate::model::error_chain::error_chain;
use crate::model::event::Event;
use crate::model::name::HostName;
use crate::model::node::NodeSpec;
use crate::model::resumption::ResumedBy;
use crate::model::role::Role;
use crate::operation::cluster_site::{PeerHosts, PooledHosts, Workspace};
use crate::operation::goal::client_url;
use crate::operation::member_host::MemberHost;
use crate::workspace::host_lock::{HostLock, HostLockError};

/// The nodes, as they are recorded, and how they are deployed.
#[derive(Debug)]
pub(super) struct RecoveryRun {
    pub(super) specs: Vec<NodeSpec>,
    /// Hosts to work on at the same time.
    pub(super) limit: NonZeroUsize,
    /// How long to wait for other operations on the nodes.
    pub(super) lock_wait: Duration,
}

impl RecoveryRun {
    pub(super) fn spec(&self, name: &HostName) -> Result<&NodeSpec, RecoveryObstacle> {
        let found = self.specs.iter().find(|spec| spec.name == *name);
        found.ok_or_else(|| RecoveryObstacle::NotReached(name.to_string()))
    }

    /// How etcd is reached: through the members of all nodes.
    ///
    /// # Errors
    /// When the client certificate cannot be used.
    pub(super) fn access(&self, workspace: &Workspace) -> Result<EtcdAccess, EtcdMembersError> {
        let etcd = self.specs.iter().filter(|spec| spec.roles.contains(&Role::Etcd));
        let urls = etcd.filter_map(|spec| spec.control_plane_ip).map(client_url).collect();
        etcd_members::access(&workspace.layout, urls)
    }

    /// etcd as it works.
    ///
    /// # Errors
    /// When it does not.
    pub(super) async fn observe(&self, workspace: &Workspace) -> Result<Membership, EtcdMembersError> {
        self.access(workspace)?.observe().await.map_err(EtcdMembersError::Observe)
    }

    /// In the order of names, so that of two commands that wait for each other's hosts one goes on.
    ///
    /// # Errors
    /// When another operation still has one of them at the end of the wait.
    pub(super) async fn lock(
        &self,
        nodes: &[HostName],
        workspace: &Workspace,
        cancel: &Cancel,
    ) -> Result<Vec<HostLock>, HostLockError> {
        let mut locks = Vec::new();
        for node in nodes.iter().collect::<BTreeSet<_>>() {
            locks.push(HostTurn::new(workspace, node, self.lock_wait).take(cancel).await?);
        }
        Ok(locks)
    }

    /// Deploys nodes as always, once the API serves. With `replace_member`, members that have lost their data are replaced.
    ///
    /// # Errors
    /// When the nodes cannot be listed. Failures of nodes are in the report.
    pub(super) async fn deploy(
        &self,
        nodes: Vec<HostName>,
        replace_member: bool,
        workspace: Arc<Workspace>,
        cancel: &Cancel,
    ) -> Result<DeployReport, EtcdRecoverError> {
        let resumed = if replace_member { ResumedBy::MemberReplacement } else { ResumedBy::Expansion };
        let names: BTreeSet<HostName> = nodes.into_iter().collect();
        let request = DeployRequest {
            nodes: NodeSelection::Named(names.clone()),
            run: RunOptions { dry_run: false, lock_wait: self.lock_wait, resumed },
            replace_member,
            replace_machine: false,
            limit: self.limit,
        };
        let listed = cluster_nodes::list(&workspace.layout).await;
        let listed = listed.map(|all| request.nodes.among(&all));
        let selected = listed.map_err(|error| EtcdRecoverError::Deploy { error, resumed })?;
        // A snapshot may be of before they were added; the others join all the same.
        let missing: Vec<HostName> = names.difference(&selected.names()).cloned().collect();
        let mut report =
            deploy_selected(selected, &Foreseen::new(), &request, workspace.clone(), cancel).await;
        let unknown =
            |name: HostName| set_aside(&workspace, name.clone(), OperationFailure::NoNode(name), false);
        report.nodes.extend(missing.into_iter().map(unknown));
        Ok(report)
    }
}

/// The host of a node.
pub(super) fn host(workspace: &Workspace, spec: &NodeSpec, cancel: &Cancel) -> MemberHost {
    let share = Share::new(cancel.clone(), UPLOADS);
    MemberHost(PooledHosts { pool: workspace.pool.clone(), share }.host(spec))
}

/// Waits for any API server.
///
/// # Errors
/// When none answers within the limit.
pub(super) async fn api_answers(
    workspace: &Workspace,
    node: &HostName,
    limit: Duration,
) -> Result<(), WaitError> {
    waiting(workspace, node, "the API to answer");
    wait_for("the API to answer", limit, || async {
        let listed = async {
            nodes::list(&client::connect_without_retry(&workspace.layout.admin_conf()).await?).await
        };
        match listed.await {
            Ok(_) => WaitStatus::Holds(()),
            Err(error) => WaitStatus::NotYet(error_chain(&error)),
        }
    })
    .await
}

/// A phase of the recovery in its record: that of the node whose member etcd continues with.
pub(super) async fn phase<T, E>(
    workspace: &Workspace,
    (host, title): (&HostName, &str),
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let (host, phase, began) = (host.clone(), title.to_owned(), Instant::now());
    (workspace.report)(Event::PhaseBegun { host: host.clone(), phase: phase.clone() });
    let done = work.await;
    (workspace.report)(Event::PhaseEnded { host, phase, elapsed: began.elapsed(), holds: done.is_ok() });
    done
}

pub(super) fn acted(workspace: &Workspace, host: &HostName, action: &str) {
    (workspace.report)(Event::Acted { host: host.clone(), action: action.to_owned() });
}

pub(super) fn waiting(workspace: &Workspace, host: &HostName, condition: &str) {
    (workspace.report)(Event::Waiting {
        host: host.clone(),
        condition: condition.to_owned(),
        last_seen: String::new(),
        elapsed: Duration::ZERO,
    });
}
