//! The ports of the real site over the stage.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use axum::http::StatusCode;
use jiff::Timestamp;
use metalform::bundle::manifest::Bundle;
use metalform::engine::host::{CertificateSigner, Convergence, EventSink, HostError, Looked};
use metalform::engine::plan::Plan;
use metalform::etcd::client::EtcdConnector;
use metalform::kube_api::http_probe::ProbeError;
use metalform::model::facts::Facts;
use metalform::model::node::NodeSpec;
use metalform::operation::cluster_site::{ImageRegistry, Network, PeerHosts};
use metalform::operation::host_access::{HostAccess, HostPlan, SharedDesired};
use metalform::registry::error::RegistryError;
use metalform::resource::contract::change::Verdict;
use metalform::resource::contract::probe::{Observed, Probe};
use metalform::resource::contract::step::UnitVerb;
use metalform::transport::{Output, Program};

use crate::host::session::HostSession;
use crate::host::{Crash, ScriptedHost};
use crate::stage::Stage;

/// Passes over the resources of a plan before a difference is an error, as in the engine.
const PASSES: usize = 8;
/// How long a round trip takes.
const ROUND_TRIP: Duration = Duration::from_millis(10);

/// A scripted host as the site reaches it.
pub struct StageHost {
    pub session: HostSession,
    pub stage: Stage,
    /// The clock of this machine: those of scripted hosts count steps.
    pub now: fn() -> Timestamp,
}

impl StageHost {
    async fn round_trip(&self) {
        tokio::time::sleep(ROUND_TRIP).await;
        let _ = self.stage.pass();
    }
}

#[async_trait]
impl HostAccess for StageHost {
    async fn facts(&self) -> Result<Facts, HostError> {
        self.round_trip().await;
        Ok(Facts { clock: (self.now)().as_second(), ..self.session.facts().await? })
    }

    async fn observe(&self, probes: &BTreeSet<Probe>) -> Result<Observed, HostError> {
        self.round_trip().await;
        self.session.observe(probes).await
    }

    async fn plan(&self, desired: SharedDesired, facts: &Facts) -> Result<HostPlan, HostError> {
        let probes = desired.items().into_iter().flat_map(|item| item.probes).collect();
        let observed = self.observe(&probes).await?;
        Ok(HostPlan(Looked { desired, facts: Some(facts.clone()), observed }))
    }

    async fn apply(
        &self,
        plan: &HostPlan,
        signer: CertificateSigner<'_>,
        _: EventSink<'_>,
    ) -> Result<Convergence, HostError> {
        let desired = &plan.0.desired;
        let items = desired.items();
        let probes: BTreeSet<Probe> = items.iter().flat_map(|item| item.probes.clone()).collect();
        let (mut verdicts, mut changed) = (plan.0.plan().verdicts, Vec::new());
        for pass in 0.. {
            let differing: Vec<String> = verdicts
                .iter()
                .filter(|(_, one)| matches!(one, Verdict::Change(_)))
                .map(|(id, _)| id.clone())
                .collect();
            let plan = Plan { verdicts };
            if differing.is_empty() && plan.refusals().is_empty() {
                break;
            }
            if pass == PASSES {
                return Err(HostError::StillDiffers { resources: differing });
            }
            self.session.apply(&plan, signer).await?;
            changed.extend(differing);
            verdicts = desired.verdicts(&self.observe(&probes).await?);
        }
        changed.sort();
        changed.dedup();
        let unchanged = items.len() - changed.len();
        Ok(Convergence { changed, unchanged })
    }

    async fn run(&self, program: &Program) -> Result<Output, HostError> {
        self.round_trip().await;
        self.session.reach().await?;
        let mut host = self.session.lock();
        if let Some(report) = host.container_log(&program.script) {
            return Ok(Output { status: 0, stdout: report.into_bytes(), stderr: Vec::new() });
        }
        if let Some(printed) = host.inventory(&program.script) {
            return Ok(Output { status: 0, stdout: printed.into_bytes(), stderr: Vec::new() });
        }
        let status = if host.run_program(&program.script) { 0 } else { 127 };
        Ok(Output { status, stdout: Vec::new(), stderr: Vec::new() })
    }
}

impl ScriptedHost {
    /// Programs of the site that are not resources.
    fn run_program(&mut self, script: &str) -> bool {
        if script == "systemctl restart kubelet.service\n" {
            let Self { units, tree, clock, .. } = self;
            return units.act("kubelet.service", UnitVerb::Restart, tree, *clock).is_ok();
        }
        // Reports of units are only for messages: they stay empty.
        self.run_known(script)
    }

    /// What the scripts that compare the host with what it was print: its packages, and its files.
    fn inventory(&self, script: &str) -> Option<String> {
        if script.contains("DPkg::Lock::Timeout=120 check") {
            return Some("none\n".to_owned());
        }
        let packages = self.packages.installed.keys().map(|name| format!("package\t{name}\tinstalled\n"));
        let files = self.tree.below("/etc").into_iter().map(|path| format!("path\t{path}\tf\n"));
        script
            .contains("echo '--'")
            .then(|| format!("none\n--\n{}", packages.chain(files).collect::<String>()))
    }

    /// What the script that reports a container prints of one that crashes; of all others it prints nothing.
    fn container_log(&self, script: &str) -> Option<String> {
        let (_, rest) = script.split_once("/var/log/pods/kube-system_")?;
        let crash = self.crashing.get(rest.split_once("-*/")?.0)?;
        let Crash { restarts, last_line, .. } = crash;
        Some(format!("starts {restarts}\nrunning no\n\n2026-01-01T00:00:00.1Z stderr F {last_line}\n"))
    }
}

/// The hosts of other nodes.
pub struct StagePeers {
    pub stage: Stage,
    pub now: fn() -> Timestamp,
}

impl PeerHosts for StagePeers {
    fn host(&self, node: &NodeSpec) -> Arc<dyn HostAccess> {
        let session = self.stage.session(node.name.as_str()).unwrap();
        Arc::new(StageHost { session, stage: self.stage.clone(), now: self.now })
    }
}

/// Connections to members of the stage.
pub struct StageEtcd(pub Stage);

#[async_trait]
impl EtcdConnector for StageEtcd {
    async fn connect(
        &self,
        urls: &[&String],
        _: Duration,
    ) -> Result<etcd_client::Client, etcd_client::Error> {
        let mut refused = etcd_client::Error::ElectError("no URL".to_owned());
        for url in urls {
            match self.0.etcd_client(url).await {
                Ok(client) => return Ok(client),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }
}

/// A network on which every address answers.
pub struct StageNetwork;

#[async_trait]
impl Network for StageNetwork {
    async fn connect(&self, _: SocketAddr) -> std::io::Result<()> {
        Ok(())
    }

    async fn get(&self, _: SocketAddr, _: &str, _: Duration) -> Result<StatusCode, ProbeError> {
        Ok(StatusCode::OK)
    }
}

/// A registry that has all images or none.
#[derive(Clone, Default)]
pub struct StageRegistry(Arc<AtomicBool>);

#[async_trait]
impl ImageRegistry for StageRegistry {
    async fn connect(&self) -> std::io::Result<()> {
        Ok(())
    }

    async fn missing(&self, bundle: &Bundle) -> Result<BTreeSet<String>, RegistryError> {
        let loaded = self.0.load(Ordering::Relaxed);
        Ok(bundle.images.keys().filter(|_| !loaded).cloned().collect())
    }

    async fn load(&self, _: &Path, bundle: &Bundle) -> Result<usize, RegistryError> {
        let loaded = self.0.swap(true, Ordering::Relaxed);
        Ok(if loaded { 0 } else { bundle.images.len() })
    }
}
