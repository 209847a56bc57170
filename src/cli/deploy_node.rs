//! `metalform deploy-node`.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use futures::future::join_all;

use super::failure::{Exit, Failure};
use super::invocation::Invocation;
use super::preview::{self, DryRun};
use super::ssh_arguments::SshArguments;
use super::{output, summary, workspace};
use crate::engine::cancel::Cancel;
use crate::engine::share::{Share, UPLOADS};
use crate::kube_api::{client, nodes};
use crate::model::error_chain::error_chain;
use crate::model::name::HostName;
use crate::model::node::NodeSpec;
use crate::operation::cluster_site::{ClusterSite, Ports, Workspace};
use crate::operation::deploy::DeployOperation;
use crate::operation::dry_run::dry_run;
use crate::operation::run::{RunContext, run};
use crate::service;
use crate::workspace::trust::API;

/// Deploy the hosts described by Node objects and verify the result
///
/// Reads each Node from the API: its roles (labels), its taints, and the SSH settings of its host (annotations).
/// Several are deployed side by side; changes of etcd membership wait for each other. Run again, it changes only
/// what differs.
#[derive(Debug, Args)]
pub struct DeployNode {
    /// Names of Nodes
    #[arg(required = true, value_name = "NAME")]
    names: Vec<HostName>,
    #[command(flatten)]
    ssh: SshArguments,
    #[command(flatten)]
    dry: DryRun,
}

/// What to do about a Node that is wrong.
pub const CORRECT: &str = "fix the manifest and run kubectl apply -f again";

impl DeployNode {
    /// Runs it.
    ///
    /// # Errors
    /// For each node that is not what it should be, one line.
    pub async fn run(&self, invocation: &Invocation) -> Result<ExitCode, Failure> {
        let setting = workspace::open(invocation, &self.ssh).await?;
        let specs = specs(&setting, &self.names).await?;
        let dry = self.dry.dry_run;
        let outcomes = join_all(
            specs.into_iter().map(|spec| deploy(setting.clone(), spec, dry, invocation.cancel.clone())),
        )
        .await;
        let mut failed: Option<Failure> = None;
        let mut changes = false;
        for outcome in outcomes {
            match outcome {
                Ok(done) => {
                    changes |= done.changes;
                    output::print(&done.text)?;
                }
                Err(failure) => match &mut failed {
                    None => failed = Some(failure),
                    Some(all) => {
                        all.errors.extend(failure.errors);
                        all.hints.extend(failure.hints);
                    }
                },
            }
        }
        match failed {
            None => Ok(self.dry.exit_code(changes)),
            Some(mut all) => {
                all.hints.sort();
                all.hints.dedup();
                Err(all)
            }
        }
    }
}

/// What one node came to, for people; for a dry run, whether it would change.
struct Deployed {
    text: String,
    changes: bool,
}

async fn deploy(
    setting: Arc<Workspace>,
    spec: NodeSpec,
    dry: bool,
    cancel: Cancel,
) -> Result<Deployed, Failure> {
    for warning in &spec.warnings {
        tracing::warn!("{}: {warning}", spec.name);
    }
    if let Some(available) = setting.bundle.kubernetes_version() {
        spec.check_version(available).map_err(|problems| Failure {
            exit: Exit::Configuration,
            errors: problems.to_string().lines().map(str::to_owned).collect(),
            hints: vec![CORRECT.to_owned()],
        })?;
    }
    let goal = service::workspace::goal(&setting, &spec);
    let report = setting.report.clone();
    let share = Share::new(cancel.clone(), UPLOADS);
    let ports = Ports::of_command(&setting, &spec, share);
    let site = ClusterSite::new(setting, goal.clone(), spec, ports);
    let name = goal.name.as_str();
    if dry {
        let preview = dry_run::<DeployOperation>(&goal, &site.dry()).await;
        let preview = preview.map_err(|error| summary::failure(name, &error))?;
        let text = preview::text(name, &preview, output::paint());
        return Ok(Deployed { text, changes: preview.changes() });
    }
    let context = RunContext { host: goal.name.clone(), report: &|event| report(event), cancel };
    let outcome = run::<DeployOperation>(&goal, &site, context).await;
    let done = outcome.map_err(|error| summary::failure(name, &error))?;
    Ok(Deployed { text: summary::text(name, &done), changes: done.changed > 0 })
}

/// Reads and checks all Nodes before anything is done to any.
///
/// # Errors
/// Every Node that is missing or wrong.
pub async fn specs(setting: &Workspace, names: &[HostName]) -> Result<Vec<NodeSpec>, Failure> {
    let api = |error: &dyn std::error::Error| {
        Failure::new(Exit::Api, format!("{} ({API})", error_chain(error)))
            .hint("is the API server up? kubectl --kubeconfig /etc/kubernetes/admin.conf get nodes")
    };
    let client = client::connect(&setting.layout.admin_conf()).await.map_err(|error| api(&error))?;
    let mut specs = Vec::new();
    let mut errors = Vec::new();
    for name in names {
        match nodes::get(&client, name).await.map_err(|error| api(&error))? {
            None => errors.push(format!("there is no Node {name}")),
            Some(node) => match NodeSpec::from_node(&node) {
                Ok(spec) => specs.push(spec),
                Err(problems) => errors.extend(problems.to_string().lines().map(str::to_owned)),
            },
        }
    }
    if errors.is_empty() {
        return Ok(specs);
    }
    let hints = vec![CORRECT.to_owned()];
    Err(Failure { exit: Exit::Configuration, errors, hints })
}
