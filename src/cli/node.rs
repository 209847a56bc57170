//! `metalform node`.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::failure::Failure;
use super::invocation::Invocation;
use super::output::{Format, document, print};
use super::ssh_arguments::SshArguments;
use super::workspace;
use crate::model::name::HostName;
use crate::model::ssh_target::VerifiedHostKey;
use crate::report::node_table;
use crate::service::node_check::{self, CheckedNode, NodeCheckRequest};
use crate::service::node_list;
use crate::workspace::layout::Layout;

/// Inspect nodes
#[derive(Debug, Args)]
pub struct NodeArgs {
    #[command(subcommand)]
    command: NodeVerb,
}

#[derive(Debug, Subcommand)]
enum NodeVerb {
    /// Test the connection to a node's host (address, host key, key, sudo, shell), and list package sources besides
    /// metalform's; changes nothing
    Check(NodeCheckArgs),
    /// List nodes with their roles, versions and addresses
    List(NodeListArgs),
}

#[derive(Debug, Args)]
struct NodeCheckArgs {
    /// Names of Nodes
    #[arg(required = true, value_name = "NAME")]
    names: Vec<HostName>,
    /// Accept the host key with this fingerprint and remember it, also in place of another one; that of a bastion as
    /// ADDRESS:PORT=SHA256:... (repeatable)
    #[arg(long, value_name = "SHA256:...")]
    accept_host_key: Vec<VerifiedHostKey>,
    #[command(flatten)]
    ssh: SshArguments,
}

#[derive(Debug, Args)]
struct NodeListArgs {
    /// Output format
    #[arg(long, short, default_value = "table")]
    output: Format,
}

impl NodeArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// When a host cannot be logged in to, or the API cannot be used.
    pub async fn run(&self, invocation: &Invocation) -> Result<ExitCode, Failure> {
        match &self.command {
            NodeVerb::Check(arguments) => check(arguments, invocation).await,
            NodeVerb::List(arguments) => list(arguments).await,
        }
    }
}

async fn check(arguments: &NodeCheckArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = workspace::open(invocation, &arguments.ssh).await?;
    let request = NodeCheckRequest {
        names: arguments.names.clone(),
        accept_host_keys: arguments.accept_host_key.clone(),
    };
    let mut printed = Ok(());
    let mut report = |node: &CheckedNode| {
        printed = std::mem::replace(&mut printed, Ok(())).and_then(|()| print(&node_table::checked(node)));
    };
    node_check::check(&request, &workspace.layout, &workspace.pool, &mut report).await?;
    printed.map(|()| ExitCode::SUCCESS)
}

async fn list(arguments: &NodeListArgs) -> Result<ExitCode, Failure> {
    let nodes = node_list::list(&Layout::default()).await?;
    match arguments.output {
        Format::Json | Format::Yaml => document(arguments.output, &nodes)?,
        Format::Name => print(&nodes.iter().map(|node| format!("{}\n", node.name)).collect::<String>())?,
        Format::Table | Format::Wide => {
            print(&node_table::text(&nodes, arguments.output == Format::Wide))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
