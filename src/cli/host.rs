//! `metalform host`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::clock;
use super::failure::Failure;
use super::output::{Format, document, print};
use crate::machine::entered_host::EnteredHost;
use crate::machine::host_change::HostRequest;
use crate::model::name::HostName;
use crate::operation::cluster_site::ApiPort;
use crate::report::host_table;
use crate::service::host_add::{self, HostAddRequest};
use crate::service::{host_list, host_state_change};
use crate::workspace::layout::Layout;

/// Manage the pool of hosts that Machines claim
#[derive(Debug, Args)]
pub struct HostArgs {
    #[command(subcommand)]
    command: HostVerb,
}

#[derive(Debug, Subcommand)]
enum HostVerb {
    /// Add a host, or every host of a roster file, to the pool; of a file all or none
    Add(HostAddArgs),
    /// List the hosts of the pool: address, state, Machine
    List(HostListArgs),
    /// Request a new inspection of a host that has no Machine, and show what is known of it
    Inspect(HostInspectArgs),
    /// Request that a host is released from quarantine or from its Machine; it is verified clean before it is free again
    Release(HostReleaseArgs),
    /// Keep a host out of the pool until it is released: at once if it is free, else when its Machine is gone
    Quarantine(HostQuarantineArgs),
    /// Declare that a host will not return: its Machine is replaced and its Node deleted, without a reset of the host
    Lost(HostLostArgs),
}

#[derive(Debug, Args)]
struct HostAddArgs {
    /// Name of the Host, and of its Node
    #[arg(required_unless_present = "roster", requires = "address")]
    name: Option<HostName>,
    /// Add every host of this roster file instead. Its label topology.kubernetes.io/zone is also the failure domain
    #[arg(long, value_name = "FILE", conflicts_with_all = ["name", "address", "user", "port", "sudo", "host_key", "bastion", "labels", "zone"])]
    roster: Option<PathBuf>,
    /// The IP address or host name that SSH connects to
    #[arg(long)]
    address: Option<String>,
    /// SSH user [default: root]
    #[arg(long)]
    user: Option<String>,
    /// SSH port [default: 22]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Run programs with sudo
    #[arg(long)]
    sudo: bool,
    /// The host key to accept: a public key, or its fingerprint SHA256:... [default: those known on the bootstrap node]
    #[arg(long, value_name = "KEY")]
    host_key: Option<String>,
    /// Jump hosts, first hop first: [user@]address[:port], separated by commas
    #[arg(long)]
    bastion: Option<String>,
    /// Label for host selectors (repeatable)
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// Failure domain, such as a rack: Machines are spread over them
    #[arg(long)]
    zone: Option<String>,
}

#[derive(Debug, Args)]
struct HostListArgs {
    /// Output format
    #[arg(long, short, default_value = "table")]
    output: Format,
}

#[derive(Debug, Args)]
struct HostInspectArgs {
    /// Name of the Host
    name: HostName,
}

#[derive(Debug, Args)]
struct HostReleaseArgs {
    /// Name of the Host
    name: HostName,
    /// Confirm that the host is off and stays off until its Node is deleted: releases it although its Machine exists
    #[arg(long)]
    confirm_powered_off: bool,
}

#[derive(Debug, Args)]
struct HostQuarantineArgs {
    /// Name of the Host
    name: HostName,
    /// Why, for other operators
    #[arg(long)]
    reason: String,
}

#[derive(Debug, Args)]
struct HostLostArgs {
    /// Name of the Host
    name: HostName,
    /// Why, for other operators
    #[arg(long)]
    reason: String,
    /// Confirm that the host is off, and stays off until it is released or its Host deleted
    #[arg(long, required = true)]
    confirm_powered_off: bool,
}

fn label(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = pair.ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

impl HostArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// When the API cannot be used, or the request is refused.
    pub async fn run(&self) -> Result<ExitCode, Failure> {
        let port = ApiPort::Kubeconfig(Layout::default().admin_conf());
        match &self.command {
            HostVerb::Add(arguments) => {
                let added = host_add::add(&port, arguments.request()).await?;
                let lines = added.iter().map(|host| format!("host {} added ({})\n", host.name, host.address));
                print(&lines.collect::<String>())?;
            }
            HostVerb::List(arguments) => {
                let hosts = host_list::list(&port).await?;
                match arguments.output {
                    Format::Json | Format::Yaml => document(arguments.output, &hosts)?,
                    Format::Name => {
                        print(&hosts.iter().map(|host| format!("{}\n", host.name)).collect::<String>())?;
                    }
                    Format::Table | Format::Wide => {
                        print(&host_table::text(&hosts, arguments.output == Format::Wide))?;
                    }
                }
            }
            HostVerb::Inspect(arguments) => change(&port, &arguments.name, &HostRequest::Inspect).await?,
            HostVerb::Release(arguments) => {
                let request = HostRequest::Release { powered_off: arguments.confirm_powered_off };
                change(&port, &arguments.name, &request).await?;
            }
            HostVerb::Lost(arguments) => {
                let request = HostRequest::Lost { reason: arguments.reason.clone() };
                change(&port, &arguments.name, &request).await?;
            }
            HostVerb::Quarantine(arguments) => {
                let request = HostRequest::Quarantine { reason: arguments.reason.clone() };
                change(&port, &arguments.name, &request).await?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

async fn change(port: &ApiPort, name: &HostName, request: &HostRequest) -> Result<(), Failure> {
    let (host, changed) = host_state_change::change(port, name, request, clock::now()).await?;
    let requested = match request {
        HostRequest::Inspect => "inspection requested",
        HostRequest::Release { .. } => "release requested",
        HostRequest::Quarantine { .. } => "quarantine requested",
        HostRequest::Lost { .. } => "declared lost",
    };
    let requested = if changed { requested } else { "unchanged" };
    print(&format!("host {name}: {requested}\n{}", host_table::details(&host)))
}

impl HostAddArgs {
    fn request(&self) -> HostAddRequest {
        match (&self.roster, &self.name, &self.address) {
            (None, Some(name), Some(address)) => HostAddRequest::One(EnteredHost {
                name: name.clone(),
                address: address.clone(),
                port: self.port,
                user: self.user.clone(),
                sudo: self.sudo,
                host_key: self.host_key.clone(),
                bastion: self.bastion.clone(),
                labels: self.labels.iter().cloned().collect(),
                zone: self.zone.clone(),
            }),
            // clap requires one of them.
            (roster, ..) => HostAddRequest::Roster(roster.clone().unwrap_or_default()),
        }
    }
}
