//! Jobs on hosts of the pool, over the operations that the commands run.
//!
//! # Guarantees
//! - Every program of a job that changes its host has the token of its fence ([`PoolPorts::ports`]).
//! - A job has its host to itself: commands on the bootstrap node take the same lock.
//! - A job can be repeated from any state that an interrupted one leaves.

mod check;
mod deployment;
mod fault;
mod login_key;
mod packages;
mod ports;
mod power_hook;
mod power_off;
mod reset;
mod ssh_keys;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kube::Client;

pub use self::fault::JobFault;
pub use self::ports::{PoolPorts, SshPorts};
use super::job_performer::{JobContext, JobPerformer};
use crate::engine::cancel::Cancel;
use crate::machine::api::host::HostObject;
use crate::machine::host_job::HostJob;
use crate::machine::job_order::{JobOrder, NodeOrder};
use crate::machine::job_outcome::{HostFindings, HostPresence, JobError};
use crate::machine::pool_node;
use crate::model::error_chain::error_chain;
use crate::model::event::Event;
use crate::model::name::HostName;
use crate::model::node::NodeSpec;
use crate::operation::cluster_site::{ClusterSite, Ports, Workspace};
use crate::operation::contract::Operation;
use crate::operation::goal::NodeGoal;
use crate::operation::run::{RunContext, run};
use crate::operation::site::Site;
use crate::service::host_turn::HostTurn;
use crate::service::workspace::goal;
use crate::transport::Program;

/// How long a command on the same host is waited for.
const LOCK_WAIT: Duration = Duration::from_secs(30);
/// How long a host may take to answer a probe.
const PROBE: Duration = Duration::from_secs(10);

/// Performs jobs on hosts of the pool.
pub struct PoolPerformer {
    /// The bootstrap node.
    pub workspace: Arc<Workspace>,
    /// The API.
    pub client: Client,
    /// How hosts are reached.
    pub ports: Arc<dyn PoolPorts>,
}

/// One job that is performed.
struct Job<'a> {
    pool: &'a PoolPerformer,
    order: &'a JobOrder,
    context: &'a JobContext<'a>,
    spec: NodeSpec,
}

#[async_trait]
impl JobPerformer for PoolPerformer {
    async fn perform(&self, order: &JobOrder, context: &JobContext<'_>) -> Result<HostFindings, JobError> {
        self.attempt(order, context).await.map_err(|fault| fault.into_error(&order.fence.host))
    }

    async fn probe(&self, host: &HostObject) -> HostPresence {
        let Some(spec) = host.metadata.name.as_ref().and_then(|name| name.parse().ok()) else {
            return HostPresence::Unknown;
        };
        let spec = match self.spec(&spec, host).await {
            Ok(spec) => spec,
            Err(fault) => {
                tracing::warn!("host {spec}: not probed: {}", error_chain(&fault));
                return HostPresence::Unknown;
            }
        };
        let access = self.ports.ports(&spec, None, &Cancel::never()).host;
        let program = Program { script: ":\n".to_owned(), payload: Vec::new() };
        match tokio::time::timeout(PROBE, access.run(&program)).await {
            Err(_) => HostPresence::Silent,
            Ok(Err(error)) => fault::presence(&error),
            Ok(Ok(_)) => HostPresence::Answers,
        }
    }
}

impl PoolPerformer {
    async fn attempt(&self, order: &JobOrder, context: &JobContext<'_>) -> Result<HostFindings, JobFault> {
        let name = &order.fence.host;
        let _turn = HostTurn::new(&self.workspace, name, LOCK_WAIT).take(&context.cancel).await?;
        let job = async || {
            let spec = self.spec(name, &order.host).await?;
            Ok::<_, JobFault>(Job { pool: self, order, context, spec })
        };
        let nothing = |()| HostFindings::default();
        match order.job {
            HostJob::Inspect => job().await?.inspect().await,
            HostJob::Check => job().await?.check().await,
            HostJob::UpgradePackages => job().await?.upgrade_packages().await.map(nothing),
            HostJob::Deploy => {
                let job = job().await?;
                job.deploy(job.node()?).await.map(nothing)
            }
            HostJob::RestartKubelet => {
                let job = job().await?;
                job.restart_kubelet(job.node()?).await.map(nothing)
            }
            HostJob::StopKubelet => job().await?.stop_kubelet().await.map(nothing),
            HostJob::Reset => job().await?.reset().await.map(nothing),
            // It does not log in.
            HostJob::PowerOff => self.power_off(order, context).await.map(nothing),
        }
    }

    /// The node that a host would be, without what a Machine gives it.
    async fn spec(&self, name: &HostName, host: &HostObject) -> Result<NodeSpec, JobFault> {
        if *name == self.workspace.subject.name {
            return Err(JobFault::BootstrapNode(name.clone()));
        }
        let ssh = host.spec.ssh_target(self.login_key(host).await?.as_deref())?;
        let spec = NodeSpec::parse(&pool_node::manifest(name, &host.spec))?;
        Ok(NodeSpec { ssh, ..spec })
    }
}

impl Job<'_> {
    fn node(&self) -> Result<&NodeOrder, JobFault> {
        self.order.node.as_ref().ok_or(JobFault::NoNode(self.order.job))
    }

    fn goal(&self, spec: &NodeSpec) -> NodeGoal {
        goal(&self.pool.workspace, spec)
    }

    /// Every connection to the host, under the token.
    fn ports(&self, spec: &NodeSpec) -> Ports {
        let token = u64::try_from(self.order.fence.token).unwrap_or(0);
        self.pool.ports.ports(spec, Some(token), &self.context.cancel)
    }

    fn site(&self, goal: &NodeGoal, spec: &NodeSpec) -> ClusterSite {
        ClusterSite::new(self.pool.workspace.clone(), goal.clone(), spec.clone(), self.ports(spec))
    }

    /// For looks alone. The machine may be that of another Host, whose jobs it would refuse once it has the token.
    fn looks(&self, goal: &NodeGoal) -> ClusterSite {
        let ports = self.pool.ports.ports(&self.spec, None, &self.context.cancel);
        ClusterSite::new(self.pool.workspace.clone(), goal.clone(), self.spec.clone(), ports)
    }

    async fn run<O: Operation>(&self, goal: &O::Goal, site: &dyn Site) -> Result<(), JobFault> {
        let report = |event: Event| {
            if let Event::PhaseBegun { phase, .. } = &event {
                (self.context.phase)(phase);
            }
            (self.pool.workspace.report)(event);
        };
        let cancel = self.context.cancel.clone();
        run::<O>(goal, site, RunContext { host: self.spec.name.clone(), report: &report, cancel }).await?;
        Ok(())
    }
}
