//! `metalform machinedeployment`.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde::Serialize;

use super::clock;
use super::failure::Failure;
use super::invocation::Invocation;
use super::machine::MachineNamespace;
use super::output::{Format, document, print};
use crate::machine::rollout_view::RolloutView;
use crate::operation::cluster_site::ApiPort;
use crate::report::to_stderr;
use crate::service::machine_rollout::{self, DeploymentName, RolloutChange};
use crate::workspace::layout::Layout;

/// `--timeout` without a value: a rollout that makes progress may take any time.
const NO_LIMIT: Duration = Duration::from_secs(365 * 24 * 3600);

/// Follow and control the rollouts of MachineDeployments
#[derive(Debug, Args)]
pub struct MachineDeploymentArgs {
    #[command(subcommand)]
    command: MachineDeploymentVerb,
}

#[derive(Debug, Subcommand)]
enum MachineDeploymentVerb {
    /// Follow and control a rollout: the replacement of every Machine after a change of the template
    Rollout(RolloutArgs),
}

#[derive(Debug, Args)]
struct RolloutArgs {
    #[command(subcommand)]
    command: RolloutVerb,
}

#[derive(Debug, Subcommand)]
enum RolloutVerb {
    /// Wait until the rollout is complete, and show its progress; exit with code 4 if it is paused, made no progress for
    /// progressDeadlineSeconds, or is not complete in time
    Status(RolloutStatusArgs),
    /// Replace every Machine: sets the annotation kubectl.kubernetes.io/restartedAt of the template
    Restart(RolloutTargetArgs),
    /// Restore the template of an earlier revision, by default of the latest other one
    Undo(RolloutUndoArgs),
    /// Hold changes of the template back
    Pause(RolloutTargetArgs),
    /// Roll changes of the template out again
    Resume(RolloutTargetArgs),
}

#[derive(Debug, Args)]
struct RolloutTargetArgs {
    /// Name of the MachineDeployment
    name: String,
    #[command(flatten)]
    namespace: MachineNamespace,
    /// Output format
    #[arg(long, short, default_value = "table")]
    output: Format,
}

#[derive(Debug, Args)]
struct RolloutStatusArgs {
    #[command(flatten)]
    target: RolloutTargetArgs,
    /// Show the progress at this moment, and do not wait
    #[arg(long, conflicts_with = "timeout")]
    no_wait: bool,
    /// How long to wait, in seconds [default: as long as it makes progress]
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u32>,
}

#[derive(Debug, Args)]
struct RolloutUndoArgs {
    #[command(flatten)]
    target: RolloutTargetArgs,
    /// The revision to restore: annotation machinedeployment.clusters.k8s.io/revision of a MachineSet
    #[arg(long, value_name = "N")]
    to_revision: Option<u64>,
}

impl RolloutTargetArgs {
    fn deployment(&self) -> DeploymentName {
        DeploymentName { namespace: self.namespace.namespace.clone(), name: self.name.clone() }
    }

    fn show<T: Serialize>(&self, report: &T, text: &str) -> Result<(), Failure> {
        match self.output {
            Format::Json | Format::Yaml => document(self.output, report),
            Format::Name => print(&format!("{}\n", self.name)),
            Format::Table | Format::Wide => print(&format!("machinedeployment {}: {text}\n", self.name)),
        }
    }

    fn changed(&self, change: &RolloutChange) -> Result<(), Failure> {
        self.show(change, &change.message)
    }
}

impl MachineDeploymentArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// When the API cannot be used, the request is refused, or the rollout does not complete.
    pub async fn run(&self, invocation: &Invocation) -> Result<ExitCode, Failure> {
        let port = ApiPort::Kubeconfig(Layout::default().admin_conf());
        let MachineDeploymentVerb::Rollout(RolloutArgs { command }) = &self.command;
        match command {
            RolloutVerb::Status(status) => status.run(&port, invocation).await?,
            RolloutVerb::Restart(target) => {
                target
                    .changed(&machine_rollout::restart(&port, &target.deployment(), clock::now()).await?)?;
            }
            RolloutVerb::Undo(RolloutUndoArgs { target, to_revision }) => {
                target.changed(&machine_rollout::undo(&port, &target.deployment(), *to_revision).await?)?;
            }
            RolloutVerb::Pause(target) => {
                target.changed(&machine_rollout::set_paused(&port, &target.deployment(), true).await?)?;
            }
            RolloutVerb::Resume(target) => {
                target.changed(&machine_rollout::set_paused(&port, &target.deployment(), false).await?)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl RolloutStatusArgs {
    async fn run(&self, port: &ApiPort, invocation: &Invocation) -> Result<(), Failure> {
        let name = self.target.deployment();
        let view = if self.no_wait {
            machine_rollout::status(port, &name).await?
        } else {
            let limit = self.timeout.map_or(NO_LIMIT, |seconds| Duration::from_secs(seconds.into()));
            let quiet = invocation.global.quiet;
            let progress = |view: &RolloutView| {
                if !quiet {
                    to_stderr(&format!("{}: {}", name.name, view.message));
                }
            };
            machine_rollout::wait(port, &name, limit, progress).await?
        };
        self.target.show(&view, &format!("{:?}: {}", view.stage, view.message))
    }
}
