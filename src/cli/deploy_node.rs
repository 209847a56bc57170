//! `metalform deploy-node`.

use std::num::NonZeroUsize;
use std::process::ExitCode;

use clap::Args;

use super::failure::Failure;
use super::invocation::Invocation;
use super::operation_arguments::OperationArguments;
use super::saved_plan_arguments::SavedPlanArguments;
use crate::engine::fleet;
use crate::model::name::HostName;
use crate::service::deploy::DeployRequest;
use crate::service::node_selection::NodeSelection;

/// Deploy the hosts described by Node objects and verify the result
///
/// Reads each Node from the API: its roles (labels), its taints, and the SSH settings of its host (annotations).
/// Several are deployed side by side; changes of etcd membership wait for each other. Run again, it changes only
/// what differs.
#[derive(Debug, Args)]
pub struct DeployNode {
    /// Names of Nodes
    #[arg(required_unless_present = "plan", conflicts_with = "plan", value_name = "NAME")]
    names: Vec<HostName>,
    /// Where a voting etcd member has lost its data: remove it through the others and join it again
    ///
    /// Refused unless the healthy voters among the others have quorum without it. Its node joins as a learner once every
    /// other voter is healthy, and votes again once it has copied the data. Without this option such a node is reported
    /// and left as it is.
    #[arg(long, conflicts_with = "plan")]
    replace_member: bool,
    /// Where the host is another machine than the one that the Node is of: give it that one's name, roles and etcd member
    ///
    /// Refused while the Node is Ready. The other machine must not come back. Includes --replace-member.
    #[arg(long, conflicts_with = "plan")]
    replace: bool,
    /// Hosts to work on at the same time
    #[arg(long, value_name = "N", default_value_t = fleet::LIMIT)]
    limit: NonZeroUsize,
    #[command(flatten)]
    saved: SavedPlanArguments,
    #[command(flatten)]
    operation: OperationArguments,
}

impl DeployNode {
    /// Runs the command.
    ///
    /// # Errors
    /// When Nodes cannot be read, and when a node failed.
    pub async fn run(&self, invocation: &Invocation) -> Result<ExitCode, Failure> {
        let names = self.names.iter().cloned().collect();
        let request = DeployRequest {
            nodes: NodeSelection::Named(names),
            run: self.operation.run_options(),
            replace_member: self.replace_member,
            replace_machine: self.replace,
            limit: self.limit,
        };
        self.saved.deploy("DeployNode", &request, &self.operation, invocation).await
    }
}
