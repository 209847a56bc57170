//! `metalform machine-controller`.

use std::future::pending;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use tokio::sync::watch;

use super::clock;
use super::failure::{Exit, Failure};
use super::invocation::Invocation;
use super::ssh_arguments::SshArguments;
use super::workspace;
use crate::controller::controller_metrics::ControllerMetrics;
use crate::controller::machine_controller::{self, ControllerOutputs, ControllerSettings};
use crate::serve::metrics_server::{MetricsServer, MetricsSource};
use crate::serve::notify;
use crate::serve::secure_listener::{ListenConfig, ListenError};
use crate::workspace::layout::Layout;

/// Run the controllers of Machines: deploy, replace and reset hosts of the pool as MachineDeployments require; the unit
/// metalform-machine-controller.service runs it
///
/// Of several that run, the one that has the Lease metalform-machine-controller in kube-system works; it drops its work
/// before another one can have the Lease. That of the bootstrap node is preferred: others take the Lease when it is not
/// renewed, and return it. Each host compares the token of its claim and refuses programs of an earlier one.
#[derive(Debug, Args)]
pub struct MachineControllerArgs {
    /// Provision at most N hosts at the same time
    #[arg(long, value_name = "N", default_value = "10")]
    provisionings: NonZeroUsize,
    /// Serve metrics at https://ADDRESS:PORT/metrics, to clients with a token of the cluster and the right to get that path
    /// (ClusterRole metalform:machine-metrics)
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics_listen: Option<SocketAddr>,
    /// Read this file in place of the bootstrap node's configuration and bundles, as on other masters; it is written when
    /// they are deployed
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    #[command(flatten)]
    ssh: SshArguments,
}

impl MachineControllerArgs {
    /// Runs until it is interrupted: what is begun on hosts then, the next run resumes.
    ///
    /// # Errors
    /// When the workspace or the credentials cannot be read, or the metrics cannot be served. Later failures are logged and
    /// tried again.
    pub async fn run(&self, invocation: &Invocation) -> Result<ExitCode, Failure> {
        let workspace = workspace::open_recorded(invocation, &self.ssh, self.record.as_deref()).await?;
        let metrics = Arc::new(ControllerMetrics::new(clock::now));
        let (client, present) = watch::channel(None);
        let text = metrics.clone();
        let source = MetricsSource { text: Arc::new(move || text.text()), client: present };
        let server = self.metrics_server(&workspace.layout, source).await?;
        notify::ready();
        let max_pods = workspace.configuration.kubernetes.max_pods;
        let bundles = workspace.bundles.versions().into_iter().map(str::to_owned).collect();
        let settings = ControllerSettings { provisionings: self.provisionings, max_pods, bundles };
        let outputs = ControllerOutputs { metrics, client };
        let controllers = machine_controller::run(workspace, settings, &outputs, &invocation.cancel);
        let ended = match server {
            None => controllers.await,
            Some(server) => tokio::select! {
                ended = controllers => ended,
                () = server.run(pending()) => Ok(()),
            },
        };
        ended.map_err(|error| Failure::from_error(Exit::Api, &error))?;
        Ok(ExitCode::SUCCESS)
    }

    async fn metrics_server(
        &self,
        layout: &Layout,
        source: MetricsSource,
    ) -> Result<Option<MetricsServer>, Failure> {
        let Some(listen) = self.metrics_listen else { return Ok(None) };
        let (certificate, key) = layout.machine_metrics();
        let config = ListenConfig { listen, certificate, key, clock: clock::now };
        let bound = MetricsServer::bind(&config, source).await;
        bound.map(Some).map_err(|error| {
            let failure = Failure::from_error(Exit::Host, &error);
            match error {
                ListenError::Certificate(_) => {
                    failure.hint("run `metalform expand` on the bootstrap node: it issues what is missing")
                }
                _ => failure,
            }
        })
    }
}
