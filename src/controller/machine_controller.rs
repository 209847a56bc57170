//! The machine controllers, as `metalform machine-controller` runs them.
//!
//! # Guarantees
//! - One process has them at a time ([`super::leadership`]); one that loses the Lease drops its passes and jobs first.
//! - They begin again with a new client when their kubeconfig is replaced.

use std::num::NonZeroUsize;
use std::sync::Arc;

use futures::stream::{self, StreamExt};
use jiff::Timestamp;
use kube::Client;
use tokio::sync::mpsc::{channel, unbounded_channel};

use super::cluster_passes::{ClusterPasses, PassSettings};
use super::host_jobs::{PoolPerformer, SshPorts};
use super::job_performer::JobPerformer;
use super::kubelet_signer::replaced;
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControllerSettings {
    /// Hosts that are provisioned at the same time.
    pub provisionings: NonZeroUsize,
    /// Pods that a Node has at most.
    pub max_pods: u32,
}

/// Runs them until they are cancelled. Failures are logged and tried again.
///
/// # Errors
/// When the kubeconfig cannot be used.
pub async fn run(
    workspace: Arc<Workspace>,
    settings: ControllerSettings,
    cancel: &Cancel,
) -> Result<(), ApiError> {
    let kubeconfig = workspace.layout.machine_controller_conf();
    let me = format!("{}/{}", workspace.subject.name, std::process::id());
    loop {
        let version = FileVersion::of(&[&kubeconfig]);
        let client = client::connect_without_retry(&kubeconfig).await?;
        let ports = Arc::new(SshPorts { workspace: workspace.clone(), client: client.clone() });
        let performer: Arc<dyn JobPerformer> =
            Arc::new(PoolPerformer { workspace: workspace.clone(), client: client.clone(), ports });
        let work = || control(client.clone(), performer.clone(), settings, workspace.now);
        tokio::select! {
            () = leadership::lead(&client, &me, workspace.now, work, cancel) => return Ok(()),
            () = replaced(&kubeconfig, version) => tracing::info!("the kubeconfig was replaced: connecting again"),
        }
    }
}

/// The controllers of a process that has the Lease. They end only when they are dropped.
pub async fn control(
    client: Client,
    performer: Arc<dyn JobPerformer>,
    settings: ControllerSettings,
    clock: fn() -> Timestamp,
) {
    let (caches, due) = machine_caches::watch(&client);
    let (changed, worked) = unbounded_channel();
    let workers = Arc::new(PoolWorkers::new(performer, settings.provisionings, clock, changed));
    let view = caches.clone();
    let worked = stream::unfold(worked, |mut worked| async move { Some((worked.recv().await?, worked)) });
    let worked = worked.map(move |host| view.wake_view().woken_by(&ObjectChange::Work(host)));
    let (events, queue) = channel(event_recorder::QUEUE);
    let settings = PassSettings { max_pods: settings.max_pods, events };
    let passes = ClusterPasses::new(client.clone(), caches, workers, clock, settings);
    tokio::select! {
        () = pass_loop::run(&passes, stream::select(due, worked.boxed()), PASSES, clock) => {}
        () = event_recorder::record(client, queue, clock) => {}
    }
}
