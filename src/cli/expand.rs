//! `metalform expand`.

use std::num::NonZeroUsize;
use std::process::ExitCode;

use clap::Args;

use super::failure::Failure;
use super::invocation::Invocation;
use super::operation_arguments::OperationArguments;
use super::saved_plan_arguments::SavedPlanArguments;
use crate::engine::fleet;
use crate::service::deploy::DeployRequest;
use crate::service::node_selection::NodeSelection;

/// Deploy all Nodes that are not what their manifests describe
///
/// As deploy-node, for every Node of the cluster: hosts are worked on side by side, etcd grows by one member at a time, and
/// a host that fails is set aside and blocks no other. With --dry-run, also how the voters and the quorum of etcd change.
/// A plan that was saved by --dry-run --out FILE is carried out with --plan FILE: exactly that, or nothing.
#[derive(Debug, Args)]
pub struct Expand {
    /// Hosts to work on at the same time
    #[arg(long, value_name = "N", default_value_t = fleet::LIMIT)]
    limit: NonZeroUsize,
    #[command(flatten)]
    saved: SavedPlanArguments,
    #[command(flatten)]
    operation: OperationArguments,
}

impl Expand {
    /// Runs the command.
    ///
    /// # Errors
    /// When Nodes cannot be listed, and when a node failed.
    pub async fn run(&self, invocation: &Invocation) -> Result<ExitCode, Failure> {
        let request = DeployRequest {
            nodes: NodeSelection::All,
            run: self.operation.run_options(),
            replace_member: false,
            replace_machine: false,
            limit: self.limit,
        };
        self.saved.deploy("Expand", &request, &self.operation, invocation).await
    }
}
