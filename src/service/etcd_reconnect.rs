//! `etcd recover` while etcd has its quorum, and no API server uses it: those beside a member that does not work continue
//! with one that does, and then their nodes are deployed as always. No data of etcd is touched before that.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;

use super::deploy::DeployReport;
use super::etcd_recover_error::EtcdRecoverError;
use super::etcd_recovery_run::{RecoveryRun, acted, api_answers, host, phase};
use crate::engine::cancel::Cancel;
use crate::etcd::member::{Member, Membership};
use crate::etcd::reconnection::{Listed, MemberNode, Reconnection, ReconnectionObstacle, reconnection};
use crate::etcd::recovery::DiskState;
use crate::model::error_chain::error_chain;
use crate::model::name::HostName;
use crate::model::node::NodeSpec;
use crate::model::role::Role;
use crate::operation::cluster_site::Workspace;
use crate::operation::goal::{client_url, peer_url};

/// How long the API may take to answer.
const LIMIT: Duration = Duration::from_secs(300);
/// The same where no API server is beside a member that works: one that an earlier run has connected starts in this time.
const STARTING: Duration = Duration::from_secs(30);
/// The same where none has answered for as long.
const STILL: Duration = Duration::from_secs(5);

/// A reconnection to decide on. Nothing was changed yet.
#[derive(Debug)]
pub struct PreparedReconnection {
    /// What is to be done.
    pub plan: Reconnection<HostName>,
    /// etcd as it works.
    pub working: Membership,
    run: RecoveryRun,
}

/// How long an API server is waited for before it is known that none answers. A run that was killed may have made etcd
/// work a moment ago.
pub(super) fn patience(specs: &[NodeSpec], working: &Membership) -> Duration {
    let mut masters = specs.iter().filter(|spec| spec.roles.contains(&Role::Master));
    let waits_in_vain =
        |spec: &NodeSpec| member_node(spec, working).is_some_and(|node| node.listed == Listed::Silent);
    if masters.all(waits_in_vain) { STARTING } else { LIMIT }
}

/// What is to be done, where no API server answers. Changes nothing. A host that cannot be reached is left out.
///
/// # Errors
/// When no API server can continue with another member.
pub(super) async fn prepare(
    named: Option<&HostName>,
    working: Membership,
    run: RecoveryRun,
    workspace: &Workspace,
    cancel: &Cancel,
) -> Result<PreparedReconnection, ReconnectionObstacle<HostName>> {
    let inspected = join_all(run.specs.iter().map(async |spec| {
        let node = member_node(spec, &working)?;
        if node.listed == Listed::Healthy {
            return Some(node);
        }
        match host(workspace, spec, cancel).inspect().await {
            Ok(DiskState::Reached { data: None, .. }) if node.listed == Listed::Silent => {
                Some(MemberNode { listed: Listed::Lost, ..node })
            }
            Ok(_) => Some(node),
            Err(error) => {
                tracing::warn!("{}: {}", spec.name, error_chain(&error));
                None
            }
        }
    }));
    let nodes: Vec<MemberNode<HostName>> = inspected.await.into_iter().flatten().collect();
    let plan = reconnection(&nodes, named)?;
    Ok(PreparedReconnection { plan, working, run })
}

/// Without a look at its host. `None` where the node shall have no member, or was never deployed.
fn member_node(spec: &NodeSpec, working: &Membership) -> Option<MemberNode<HostName>> {
    let url = peer_url(spec.control_plane_ip.filter(|_| spec.roles.contains(&Role::Etcd))?);
    let listed = match working.members.iter().find(|member| member.peer_urls.contains(&url)) {
        Some(member) if is_healthy_voter(member) => Listed::Healthy,
        Some(_) => Listed::Silent,
        None => Listed::No,
    };
    Some(MemberNode { node: spec.name.clone(), has_api_server: spec.roles.contains(&Role::Master), listed })
}

fn is_healthy_voter(member: &Member) -> bool {
    !member.is_learner && member.status().is_some()
}

impl PreparedReconnection {
    /// Carries it out.
    ///
    /// # Errors
    /// When an API server answers again, when etcd or the member does not any more, when no API server can be connected,
    /// and when none answers then. Failures of nodes that are deployed are in the report.
    pub async fn carry_out(
        self,
        workspace: Arc<Workspace>,
        cancel: &Cancel,
    ) -> Result<DeployReport, EtcdRecoverError> {
        let Self { plan: Reconnection { member, api_servers, joining }, run, .. } = self;
        let names = |nodes: Vec<MemberNode<HostName>>| nodes.into_iter().map(|node| node.node).collect();
        let (api_servers, joining): (Vec<HostName>, Vec<HostName>) = (names(api_servers), names(joining));
        let nodes = [api_servers.as_slice(), &joining].concat();
        let locked = run.lock(&nodes, &workspace, cancel).await?;
        let url = still_needed(&run, &member, &workspace).await?;
        let connected = connect((&run, &member, &url), &api_servers, &workspace, cancel);
        phase(&workspace, (&member, "API servers connected"), connected).await?;
        let answers = api_answers(&workspace, &member, LIMIT);
        phase(&workspace, (&member, "API answers"), answers).await.map_err(EtcdRecoverError::Unserved)?;
        drop(locked);
        run.deploy(nodes, true, workspace, cancel).await
    }
}

/// One API server is enough for all of them to be deployed.
async fn connect(
    (run, member, url): (&RecoveryRun, &HostName, &str),
    api_servers: &[HostName],
    workspace: &Workspace,
    cancel: &Cancel,
) -> Result<(), EtcdRecoverError> {
    let connected = join_all(api_servers.iter().map(async |node| {
        let remote = host(workspace, run.spec(node)?, cancel);
        acted(workspace, node, &format!("restart the API server with the etcd member of {member}"));
        remote.connect_api_server(url).await.map_err(|error| EtcdRecoverError::host(node, error))
    }))
    .await;
    if connected.iter().all(Result::is_err) {
        return connected.into_iter().collect();
    }
    connected.iter().filter_map(|one| one.as_ref().err()).for_each(|error| tracing::warn!("{error}"));
    Ok(())
}

/// The client URL of the member with which API servers continue. The plan may be old: someone has read it.
async fn still_needed(
    run: &RecoveryRun,
    member: &HostName,
    workspace: &Workspace,
) -> Result<String, EtcdRecoverError> {
    let address = run.spec(member)?.control_plane_ip;
    let address = address.ok_or_else(|| EtcdRecoverError::NoAddress(member.clone()))?;
    let working = run.observe(workspace).await?;
    if api_answers(workspace, member, STILL).await.is_ok() {
        return Err(EtcdRecoverError::Served);
    }
    let is_it = |voter: &Member| voter.peer_urls.contains(&peer_url(address));
    if working.voters().any(|voter| is_it(voter) && is_healthy_voter(voter)) {
        Ok(client_url(address))
    } else {
        Err(EtcdRecoverError::Sick(member.clone()))
    }
}
