//! `metalform etcd`.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::Global;
use super::failure::{Exit, Failure, chain};
use super::output::{Format, document, print, table};
use crate::etcd::client::{DEADLINE, EtcdAccess, EtcdCredentials};
use crate::etcd::member::Membership;
use crate::kube_api::{client, nodes};
use crate::model::api_contract::CONTROL_PLANE_IP;
use crate::model::node::NodeSpec;
use crate::model::role::Role;
use crate::report::etcd_table::{HEADER, rows};
use crate::workspace::layout::Layout;

/// Look at etcd's members
#[derive(Debug, Args)]
pub struct EtcdCommand {
    #[command(subcommand)]
    command: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Every member: voter or learner, leader, revision, size of its database, latency
    Members(Show),
    /// The same, with exit code 5 unless every voting member is healthy and no alarm is raised
    Health(Show),
}

/// How to show it.
#[derive(Debug, Args)]
pub struct Show {
    /// Output format
    #[arg(long, short, default_value = "table")]
    output: Format,
}

impl EtcdCommand {
    /// Runs it.
    ///
    /// # Errors
    /// When no member answers; for `health`, when one is not healthy.
    pub async fn run(&self, _global: &Global) -> Result<ExitCode, Failure> {
        let membership = observe().await?;
        let (Verb::Members(show) | Verb::Health(show)) = &self.command;
        let rows = rows(&membership);
        match show.output {
            Format::Json | Format::Yaml => document(show.output, &rows)?,
            Format::Name => print(
                &membership.members.iter().map(|member| format!("{}\n", member.title())).collect::<String>(),
            )?,
            Format::Table | Format::Wide => {
                let cells: Vec<[String; 10]> = rows.iter().map(|row| row.cells()).collect();
                print(&table(&HEADER, &cells))?;
            }
        }
        match &self.command {
            Verb::Members(_) => Ok(ExitCode::SUCCESS),
            Verb::Health(_) => healthy(&membership).map(|()| ExitCode::SUCCESS),
        }
    }
}

fn healthy(membership: &Membership) -> Result<(), Failure> {
    let mut errors: Vec<String> = membership
        .voters()
        .filter_map(|voter| {
            voter.health.complaint().map(|reason| format!("etcd member {}: {reason}", voter.title()))
        })
        .collect();
    errors.extend(membership.alarms.iter().map(|alarm| {
        format!("etcd has raised the alarm {} for member {:x}", alarm.kind.name(), alarm.member)
    }));
    if errors.is_empty() {
        return Ok(());
    }
    Err(Failure {
        exit: Exit::Etcd,
        errors,
        hints: vec!["crictl and journalctl -u kubelet on that node say why".to_owned()],
    })
}

/// Asks the members on this node and on all other etcd nodes, whether or not the API answers.
async fn observe() -> Result<Membership, Failure> {
    let layout = Layout::default();
    let failed = |error: &dyn std::error::Error| {
        Failure::new(Exit::Etcd, chain(error)).hint("run it as root on the bootstrap node")
    };
    let (certificate, key) = layout.etcd_client();
    let credentials = EtcdCredentials::read(&layout.pki().join("etcd/ca.crt"), &certificate, &key)
        .map_err(|error| failed(&error))?;
    let mut endpoints = vec!["https://127.0.0.1:2379".to_owned()];
    endpoints.extend(others(&layout).await);
    EtcdAccess { endpoints, credentials, deadline: DEADLINE }.observe().await.map_err(|error| failed(&error))
}

/// Members on other nodes, as far as the API says; etcd is looked at above all when it does not.
async fn others(layout: &Layout) -> Vec<String> {
    let Ok(client) = client::connect(&layout.admin_conf()).await else { return Vec::new() };
    let listed = tokio::time::timeout(DEADLINE, nodes::list(&client)).await;
    let Ok(Ok(nodes)) = listed else { return Vec::new() };
    nodes
        .iter()
        .filter(|node| NodeSpec::from_node(node).is_ok_and(|spec| spec.roles.contains(&Role::Etcd)))
        .filter_map(|node| node.metadata.annotations.as_ref()?.get(CONTROL_PLANE_IP).cloned())
        .map(|ip| format!("https://{ip}:2379"))
        .collect()
}
