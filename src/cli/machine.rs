//! `metalform machine`.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::failure::Failure;
use super::output::{Format, document, print};
use crate::operation::cluster_site::ApiPort;
use crate::report::machine_table;
use crate::service::machine_list;
use crate::workspace::layout::Layout;

/// Show Machines: nodes that MachineDeployments keep over the pool of hosts
#[derive(Debug, Args)]
pub struct MachineArgs {
    #[command(subcommand)]
    command: MachineVerb,
}

#[derive(Debug, Subcommand)]
enum MachineVerb {
    /// List the Machines of a namespace: phase, Host, Node, version
    List(MachineListArgs),
    /// Show one Machine with its Host, conditions and Events
    Describe(MachineDescribeArgs),
}

#[derive(Debug, Args)]
struct MachineListArgs {
    #[command(flatten)]
    namespace: MachineNamespace,
    /// Output format
    #[arg(long, short, default_value = "table")]
    output: Format,
}

#[derive(Debug, Args)]
struct MachineDescribeArgs {
    /// Name of the Machine
    name: String,
    #[command(flatten)]
    namespace: MachineNamespace,
    /// Output format
    #[arg(long, short, default_value = "table")]
    output: Format,
}

/// Where Machines are.
#[derive(Debug, Args)]
pub struct MachineNamespace {
    /// Namespace
    #[arg(long, short, default_value = "kube-system")]
    pub namespace: String,
}

impl MachineArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// When the API cannot be used, or there is no such Machine.
    pub async fn run(&self) -> Result<ExitCode, Failure> {
        let port = ApiPort::Kubeconfig(Layout::default().admin_conf());
        match &self.command {
            MachineVerb::List(MachineListArgs { namespace, output }) => {
                let machines = machine_list::list(&port, &namespace.namespace).await?;
                match output {
                    Format::Json | Format::Yaml => document(*output, &machines)?,
                    Format::Name => {
                        let names = machines.iter().map(|machine| format!("{}\n", machine.name));
                        print(&names.collect::<String>())?;
                    }
                    Format::Table | Format::Wide => {
                        print(&machine_table::text(&machines, *output == Format::Wide))?;
                    }
                }
            }
            MachineVerb::Describe(MachineDescribeArgs { name, namespace, output }) => {
                let described = machine_list::describe(&port, &namespace.namespace, name).await?;
                match output {
                    Format::Json | Format::Yaml => document(*output, &described)?,
                    Format::Name => print(&format!("{name}\n"))?,
                    Format::Table | Format::Wide => print(&machine_table::details(&described))?,
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
