//! `metalform node`.

use std::path::Path;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use serde::Serialize;

use super::failure::{Exit, Failure, chain};
use super::output::{Format, document, print, table};
use super::ssh_arguments::SshArguments;
use super::{Global, deploy_node, setting};
use crate::engine::facts;
use crate::engine::nonce::Nonce;
use crate::kube_api::{client, nodes};
use crate::model::api_contract::ROLE_LABEL_PREFIX;
use crate::model::api_contract::{CONTROL_PLANE_IP, WORKLOAD_PLANE_IP};
use crate::model::name::HostName;
use crate::model::node::NodeSpec;
use crate::model::ssh_target::{HostKeyPolicy, SshTarget};
use crate::transport::error::TransportError;
use crate::transport::known_hosts;
use crate::transport::ssh::SshTransport;
use crate::transport::{Output, Transport};
use crate::workspace::layout::Layout;
use crate::workspace::trust::API;

/// Look at nodes
#[derive(Debug, Args)]
pub struct NodeCommand {
    #[command(subcommand)]
    command: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Test the way to a node's host: address, host key, key, sudo, shell; changes nothing
    Check(Check),
    /// List nodes with their roles, versions and addresses
    List(List),
}

#[derive(Debug, Args)]
struct Check {
    /// Names of Nodes
    #[arg(required = true, value_name = "NAME")]
    names: Vec<HostName>,
    /// Accept the host's key if it has this fingerprint, and remember it, also in place of another
    #[arg(long, value_name = "SHA256:...")]
    accept_host_key: Option<String>,
    #[command(flatten)]
    ssh: SshArguments,
}

#[derive(Debug, Args)]
struct List {
    /// Output format
    #[arg(long, short, default_value = "table")]
    output: Format,
}

impl NodeCommand {
    /// Runs it.
    ///
    /// # Errors
    /// When a host cannot be reached as its Node says, or the API does not answer.
    pub async fn run(&self, global: &Global) -> Result<ExitCode, Failure> {
        match &self.command {
            Verb::Check(arguments) => check(arguments, global).await,
            Verb::List(arguments) => list(arguments).await,
        }
    }
}

async fn check(arguments: &Check, global: &Global) -> Result<ExitCode, Failure> {
    let setting = setting::setting(global, &arguments.ssh).await?;
    let known = setting.layout.known_hosts();
    for spec in deploy_node::specs(&setting, &arguments.names).await? {
        let nonce = Nonce::new(rand::random());
        let mut target = spec.ssh.clone();
        let mut answer = ask(&setting.pool.ssh(&target), &nonce).await;
        if let Some(expected) = &arguments.accept_host_key {
            vouch(&spec, &known, expected, &nonce, &answer).await?;
            target.host_key = match target.host_key {
                HostKeyPolicy::Known => HostKeyPolicy::AcceptNew,
                pinned => pinned,
            };
            answer = ask(&setting.pool.ssh(&target), &nonce).await;
        }
        let output = answer.map_err(|error| refused(spec.name.as_str(), &error))?;
        let facts = facts::parse(&nonce, &output)
            .map_err(|error| Failure::new(Exit::Host, format!("{}: {}", spec.name, chain(&error))))?;
        print(&format!(
            "{}: OK ({}@{}, {} {}, {})\n",
            spec.name,
            target.user,
            target.address(),
            facts.os.id,
            facts.os.version,
            facts.arch
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether the host shows the key that the operator vouches for. Another one that was remembered is forgotten then.
async fn vouch(
    spec: &NodeSpec,
    known: &Path,
    expected: &str,
    nonce: &Nonce,
    answer: &Result<Output, TransportError>,
) -> Result<(), Failure> {
    // To whom no host is known a host tells its key, and nothing more happens.
    let stranger = SshTarget { host_key: HostKeyPolicy::Known, ..spec.ssh.clone() };
    let found = match ask(&SshTransport::new(stranger, "/dev/null".into()), nonce).await {
        Err(TransportError::HostKeyUnknown { found, .. }) => found,
        Err(error) => return Err(refused(spec.name.as_str(), &error)),
        Ok(_) => {
            return Err(Failure::new(Exit::Bug, format!("{}: a host key was accepted unseen", spec.name)));
        }
    };
    if found.split_whitespace().last() != Some(expected) {
        return Err(Failure::new(
            Exit::Ssh,
            format!("{}: its host key is {found}, not {expected}", spec.name),
        )
        .hint("compare it on the host: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub"));
    }
    if let (Err(TransportError::HostKeyMismatch { .. }), HostKeyPolicy::Known) = (answer, &spec.ssh.host_key)
    {
        known_hosts::file::forget(known, &spec.ssh.host, spec.ssh.port)
            .map_err(|error| Failure::from_error(Exit::Ssh, &error))?;
    }
    Ok(())
}

async fn ask(transport: &SshTransport, nonce: &Nonce) -> Result<Output, TransportError> {
    transport.run(&facts::program(nonce), &mut |_| {}).await
}

fn refused(name: &str, error: &TransportError) -> Failure {
    let failure = Failure::new(Exit::Ssh, format!("{name}: {}", chain(error)));
    failure.hint(match error {
        TransportError::HostKeyUnknown { found, .. } => {
            let fingerprint = found.split_whitespace().last().unwrap_or_default();
            format!("when that is the host's key: metalform node check {name} --accept-host-key {fingerprint}")
        }
        TransportError::HostKeyMismatch { .. } => {
            "another machine answers there, or it was installed anew: correct metalform.dev/ssh-host-key, or say metalform node check NAME --accept-host-key with what ssh-keygen -l prints on the host".to_owned()
        }
        TransportError::AuthenticationRefused { user, .. } => {
            format!("put /etc/metalform/pki/ssh.pub into ~{user}/.ssh/authorized_keys on the host")
        }
        TransportError::SudoRefused { user, .. } => {
            format!("allow it without a password: {user} ALL=(ALL) NOPASSWD: ALL in /etc/sudoers.d/metalform")
        }
        _ => "is the host on, and is metalform.dev/ssh-host its address?".to_owned(),
    })
}

/// One node, for people and programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    name: String,
    status: String,
    roles: Vec<String>,
    version: String,
    control_plane: String,
    workload_plane: String,
    os: String,
}

async fn list(arguments: &List) -> Result<ExitCode, Failure> {
    let failed = |error: &dyn std::error::Error| {
        Failure::new(Exit::Api, format!("{} ({API})", chain(error)))
            .hint("run it as root on the bootstrap node")
    };
    let client = client::connect(&Layout::default().admin_conf()).await.map_err(|error| failed(&error))?;
    let rows: Vec<Row> =
        nodes::list(&client).await.map_err(|error| failed(&error))?.iter().map(row).collect();
    match arguments.output {
        Format::Json | Format::Yaml => document(arguments.output, &rows)?,
        Format::Name => print(&rows.iter().map(|row| format!("{}\n", row.name)).collect::<String>())?,
        Format::Table => {
            let cells: Vec<[String; 4]> = rows
                .into_iter()
                .map(|row| [row.name, row.status, row.roles.join(","), row.version])
                .collect();
            print(&table(&["NAME", "STATUS", "ROLES", "VERSION"], &cells))?;
        }
        Format::Wide => {
            let cells: Vec<[String; 7]> = rows
                .into_iter()
                .map(|row| {
                    [
                        row.name,
                        row.status,
                        row.roles.join(","),
                        row.version,
                        row.control_plane,
                        row.workload_plane,
                        row.os,
                    ]
                })
                .collect();
            let head = ["NAME", "STATUS", "ROLES", "VERSION", "CONTROL-PLANE", "WORKLOAD-PLANE", "OS"];
            print(&table(&head, &cells))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn row(node: &Node) -> Row {
    let status = node.status.as_ref();
    let info = status.and_then(|status| status.node_info.as_ref());
    let ready = status
        .and_then(|status| status.conditions.as_ref())
        .and_then(|all| all.iter().find(|one| one.type_ == "Ready"));
    let annotation = |key: &str| node.annotations().get(key).cloned().unwrap_or_else(|| "-".to_owned());
    Row {
        name: node.name_any(),
        status: match ready.map(|ready| ready.status.as_str()) {
            Some("True") => "Ready".to_owned(),
            Some("False") => "NotReady".to_owned(),
            _ => "Unknown".to_owned(),
        },
        roles: node
            .labels()
            .keys()
            .filter_map(|label| label.strip_prefix(ROLE_LABEL_PREFIX))
            .map(str::to_owned)
            .collect(),
        version: info.map_or_else(|| "-".to_owned(), |info| info.kubelet_version.clone()),
        control_plane: annotation(CONTROL_PLANE_IP),
        workload_plane: annotation(WORKLOAD_PLANE_IP),
        os: info.map_or_else(|| "-".to_owned(), |info| info.os_image.clone()),
    }
}
