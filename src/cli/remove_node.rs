//! `metalform remove-node`.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::failure::Failure;
use super::invocation::Invocation;
use super::operation_arguments::OperationArguments;
use crate::model::name::HostName;
use crate::service::cluster_changes::ClusterChanges;
use crate::service::membership_steps::membership_steps;
use crate::service::remove::{RemoveRequest, remove};

/// Remove nodes from the cluster: drain them, take their etcd members and API servers out, stop them, reset their hosts
///
/// Nothing is removed that quorum needs; the error shows the arithmetic. Several nodes are removed one at a time, in a
/// safe order. Pods are evicted within their PodDisruptionBudgets; where they do not leave in time, the node is uncordoned
/// again, unless an administrator had cordoned it. At the end each host is what it was before it became a node.
#[derive(Debug, Args)]
pub struct RemoveNode {
    /// Names of Nodes
    #[arg(required = true, value_name = "NAME")]
    names: Vec<HostName>,
    /// The host is gone: do nothing on it, and do not wait for its pods
    ///
    /// Refused while the Node is Ready. A host that comes back later must be reset before it is used again (reset-host).
    #[arg(long)]
    offline: bool,
    /// Leave the data of the node on its host: etcd's, images, volumes, logs of pods
    #[arg(long, conflicts_with = "offline")]
    keep_data: bool,
    /// Also delete pods that no controller creates again elsewhere
    #[arg(long)]
    force: bool,
    /// How long the pods of a node may take to leave, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    drain_timeout: u64,
    #[command(flatten)]
    operation: OperationArguments,
}

impl RemoveNode {
    /// Runs the command.
    ///
    /// # Errors
    /// When Nodes cannot be read, and when a node failed.
    pub async fn run(&self, invocation: &Invocation) -> Result<ExitCode, Failure> {
        let workspace = self.operation.open(invocation).await?;
        let request = RemoveRequest {
            names: self.names.iter().cloned().collect(),
            run: self.operation.run_options(),
            offline: self.offline,
            force: self.force,
            keep_data: self.keep_data,
            drain_limit: Duration::from_secs(self.drain_timeout),
        };
        let reports = remove(&request, workspace, &invocation.cancel).await?;
        let changes = ClusterChanges { steps: membership_steps(&reports), ..ClusterChanges::default() };
        self.operation.finish("RemoveNode", &reports, &changes)
    }
}
