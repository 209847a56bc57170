//! `etcd recover` while etcd has its quorum, and no API server uses it: those beside a member that does not work continue
//! with one that does, and then their nodes are deployed as always. No data of etcd is touched before that.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;

use super::command_error::ErrorClass;
use super::deploy::DeployReport;
use super::etcd_recover_error::EtcdRecoverError;
use super::etcd_recovery_run::{RecoveryRun, acted, api_answers, host};
use crate::engine::cancel::Cancel;
use crate::etcd::member::{Member, Membership};
use crate::etcd::reconnection::{Reconnection, reconnection};
use crate::model::name::HostName;
use crate::model::node::NodeSpec;
use crate::model::role::Role;
use crate::operation::cluster_site::Workspace;
use crate::operation::goal::{client_url, peer_url};

/// How long the API may take to answer.
const LIMIT: Duration = Duration::from_secs(300);
/// The same, where nothing can make it answer: the proxy may be slow.
const AT_ONCE: Duration = Duration::from_secs(5);

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
/// work a moment ago; where no API server is beside a healthy voter, none will.
pub(super) fn patience(specs: &[NodeSpec], working: &Membership) -> Duration {
    let is_healthy = healthy_voter(working);
    let mut masters = specs.iter().filter(|spec| spec.roles.contains(&Role::Master));
    let may_answer = |spec: &NodeSpec| !spec.roles.contains(&Role::Etcd) || is_healthy(spec);
    if masters.any(may_answer) { LIMIT } else { AT_ONCE }
}

/// What is to be done, where no API server answers. Changes nothing.
pub(super) async fn prepare(
    named: Option<&HostName>,
    working: Membership,
    run: RecoveryRun,
    workspace: &Workspace,
    cancel: &Cancel,
) -> Option<PreparedReconnection> {
    let beside = run
        .specs
        .iter()
        .filter(|spec| [Role::Master, Role::Etcd].iter().all(|role| spec.roles.contains(role)));
    let inspected = join_all(beside.map(async |spec| {
        let reached = host(workspace, spec, cancel).inspect().await;
        reached.ok().map(|_| spec.name.clone())
    }));
    let beside: Vec<HostName> = inspected.await.into_iter().flatten().collect();
    let is_healthy = healthy_voter(&working);
    let healthy: Vec<HostName> =
        run.specs.iter().filter(|spec| is_healthy(spec)).map(|spec| spec.name.clone()).collect();
    let plan = reconnection(&beside, &healthy, named)?;
    Some(PreparedReconnection { plan, working, run })
}

fn healthy_voter(working: &Membership) -> impl Fn(&NodeSpec) -> bool + use<> {
    let healthy = |voter: &&Member| voter.status().is_some();
    let urls: Vec<String> =
        working.voters().filter(healthy).flat_map(|voter| voter.peer_urls.clone()).collect();
    move |spec| spec.control_plane_ip.is_some_and(|address| urls.contains(&peer_url(address)))
}

impl PreparedReconnection {
    /// Carries it out.
    ///
    /// # Errors
    /// At the first step that fails. Failures of nodes that are deployed are in the report.
    pub async fn carry_out(
        self,
        workspace: Arc<Workspace>,
        cancel: &Cancel,
    ) -> Result<DeployReport, EtcdRecoverError> {
        let Self { plan: Reconnection { member, api_servers }, run, .. } = self;
        let spec = run.spec(&member)?;
        let address = spec.control_plane_ip.ok_or_else(|| EtcdRecoverError::NoAddress(member.clone()))?;
        let url = client_url(address);
        let locked = run.lock(&api_servers, &workspace, cancel).await?;
        let connected = join_all(api_servers.iter().map(async |node| {
            let remote = host(&workspace, run.spec(node)?, cancel);
            acted(&workspace, node, &format!("restart the API server with the etcd member of {member}"));
            remote.connect_api_server(&url).await.map_err(|error| EtcdRecoverError::host(node, error))
        }))
        .await;
        connected.into_iter().collect::<Result<(), EtcdRecoverError>>()?;
        api_answers(&workspace, &member, LIMIT)
            .await
            .map_err(|error| EtcdRecoverError::Silent { class: ErrorClass::Api, error })?;
        drop(locked);
        Ok(run.deploy(api_servers, true, workspace, cancel).await?)
    }
}
