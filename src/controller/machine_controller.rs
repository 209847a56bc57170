//! The machine controllers, as `metalform machine-controller` runs them.
//!
//! # Guarantees
//! - One process has them at a time ([`super::leadership`]); one that loses the Lease drops its passes and jobs first.
//! - They begin again with a new client when their kubeconfig, or the certificate that it names, is replaced.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use futures::stream::{self, StreamExt};
use jiff::Timestamp;
use kube::Client;
use tokio::sync::mpsc::{channel, unbounded_channel};
use tokio::sync::watch;

use super::candidate::{Candidate, Rank};
use super::cluster_passes::{ClusterPasses, PassSettings};
use super::controller_metrics::ControllerMetrics;
use super::host_jobs::{PoolPerformer, SshPorts};
use super::job_performer::JobPerformer;
use super::kubelet_signer::replaced;
use super::measured_performer::MeasuredPerformer;
use super::pool_collector::LeaderView;
use super::pool_workers::PoolWorkers;
use super::wake::ObjectChange;
use super::{event_recorder, leadership, machine_caches, pass_loop};
use crate::engine::cancel::Cancel;
use crate::kube_api::client::{self, ApiError};
use crate::operation::cluster_site::Workspace;
use crate::workspace::file_version::FileVersion;

/// Passes at the same time. Each is some requests long.
const PASSES: NonZeroUsize = NonZeroUsize::new(16).expect("16 is not zero");

/// How the controllers run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerSettings {
    /// Hosts that are provisioned at the same time.
    pub provisionings: NonZeroUsize,
    /// Pods that a Node has at most.
    pub max_pods: u32,
    /// Versions of Kubernetes in the bundles, that of the first one first. Another one has to be known before a Machine
    /// gets a host for it: the unit restarts the process where the bundles change.
    pub bundles: Vec<String>,
}

/// What the controllers give to others of their process.
pub struct ControllerOutputs {
    /// What they count.
    pub metrics: Arc<ControllerMetrics>,
    /// Their present client, with the credentials of the present kubeconfig.
    pub client: watch::Sender<Option<Client>>,
}

/// Runs them until they are cancelled. Failures are logged and tried again.
///
/// # Errors
/// When the kubeconfig cannot be used.
pub async fn run(
    workspace: Arc<Workspace>,
    settings: ControllerSettings,
    outputs: &ControllerOutputs,
    cancel: &Cancel,
) -> Result<(), ApiError> {
    let (kubeconfig, certificate) =
        (workspace.layout.machine_controller_conf(), workspace.layout.machine_controller_certificate());
    let credentials = [kubeconfig.as_path(), certificate.as_path()];
    let me = candidate(&workspace);
    loop {
        let version = FileVersion::of(&credentials);
        let client = client::connect_without_retry(&kubeconfig).await?;
        outputs.client.send_replace(Some(client.clone()));
        let ports = Arc::new(SshPorts { workspace: workspace.clone(), client: client.clone() });
        let performer: Arc<dyn JobPerformer> =
            Arc::new(PoolPerformer { workspace: workspace.clone(), client: client.clone(), ports });
        let work = || {
            let metrics = outputs.metrics.clone();
            control(client.clone(), performer.clone(), settings.clone(), metrics, workspace.now)
        };
        tokio::select! {
            () = leadership::lead(&client, &me, workspace.now, work, cancel) => return Ok(()),
            () = replaced(&credentials, version) => tracing::info!("the credentials were replaced: connecting again"),
        }
    }
}

/// This process, of the bootstrap node or of a master that stands by for it.
fn candidate(workspace: &Workspace) -> Candidate {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let rank = if workspace.record.is_some() { Rank::StandBy } else { Rank::Preferred };
    Candidate { identity: format!("{host}/{}", std::process::id()), rank }
}

/// The controllers of a process that has the Lease. They end only when they are dropped.
pub async fn control(
    client: Client,
    performer: Arc<dyn JobPerformer>,
    settings: ControllerSettings,
    metrics: Arc<ControllerMetrics>,
    clock: fn() -> Timestamp,
) {
    let (caches, due) = machine_caches::watch(&client);
    let (changed, worked) = unbounded_channel();
    let queue = Arc::new(Mutex::default());
    let _leading = metrics.lead(LeaderView { caches: caches.clone(), queue: queue.clone() });
    let performer = Arc::new(MeasuredPerformer { performer, metrics: metrics.clone() });
    let workers = Arc::new(PoolWorkers::new(performer, settings.provisionings, clock, changed));
    let view = caches.clone();
    let worked = stream::unfold(worked, |mut worked| async move { Some((worked.recv().await?, worked)) });
    let worked = worked.map(move |host| view.woken_by(&ObjectChange::Work(host)));
    let (events, reported) = channel(event_recorder::QUEUE);
    let ControllerSettings { max_pods, bundles, .. } = settings;
    let settings = PassSettings { max_pods, bundles, events, metrics };
    let passes = ClusterPasses::new(client.clone(), caches, workers, clock, settings);
    tokio::select! {
        () = pass_loop::run(&passes, stream::select(due, worked.boxed()), &queue, PASSES, clock) => {}
        () = event_recorder::record(client, reported, clock) => {}
    }
}
