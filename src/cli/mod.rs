//! One file for each command: flags, help, the call of its service function, output. The only place that prints.

pub mod apply;
pub mod bootstrap;
pub mod bundle;
mod bundle_build;
mod bundle_diff;
mod bundle_import;
mod bundle_pack;
pub mod check;
pub mod clock;
pub mod completion;
mod damaged_bundle;
pub mod deploy_node;
pub mod docs;
pub mod etcd;
pub mod etcd_recover;
pub mod expand;
pub mod facts;
pub mod failure;
pub mod fleet_arguments;
pub mod host;
pub mod host_arguments;
pub mod image;
pub mod interrupt;
pub mod invocation;
pub mod machine;
pub mod machine_controller;
pub mod machine_deployment;
pub mod mirror;
pub mod node;
pub mod operation_arguments;
pub mod operations;
pub mod output;
mod own_program;
pub mod plan;
pub mod push_server;
pub mod recording;
pub mod remove_node;
pub mod render;
pub mod reset_host;
pub mod saved_plan_arguments;
pub mod serve;
pub mod sign;
pub mod ssh_arguments;
pub mod state_arguments;
pub mod terminal;
pub mod usage;
pub mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use failure::{Exit, Failure};
use interrupt::{Interruption, Signals};
use invocation::Invocation;

use crate::engine::cancel;
use crate::model::resumption::ResumedBy;

/// Grow Kubernetes clusters on bare metal, over SSH, from one node, offline.
#[derive(Debug, Parser)]
#[command(name = "metalform", version, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    global: Global,
}

/// Options of every command.
#[derive(Debug, Clone, clap::Args)]
pub struct Global {
    /// How progress and logs are written to standard error
    #[arg(long, global = true, env = "METALFORM_LOG_FORMAT", default_value = "text")]
    pub log_format: LogFormat,
    /// Do not show progress
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Log more; may be repeated
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Read states/ and templates/ from this directory instead of the built-in ones
    #[arg(long, global = true, env = "METALFORM_TREE", value_name = "DIR")]
    pub tree: Option<std::path::PathBuf>,
}

/// The format of progress and logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

#[derive(Debug, Subcommand)]
enum Command {
    Bundle(bundle::BundleCommand),
    Bootstrap(bootstrap::Bootstrap),
    Node(node::NodeArgs),
    #[command(alias = "deploy_node")]
    DeployNode(deploy_node::DeployNode),
    Expand(expand::Expand),
    #[command(alias = "remove_node")]
    RemoveNode(remove_node::RemoveNode),
    #[command(alias = "reset_host")]
    ResetHost(reset_host::ResetHost),
    Host(host::HostArgs),
    Image(image::ImageArgs),
    Machine(machine::MachineArgs),
    #[command(name = "machinedeployment")]
    MachineDeployment(machine_deployment::MachineDeploymentArgs),
    Mirror(mirror::MirrorArgs),
    Operations(operations::OperationsArgs),
    Etcd(etcd::EtcdArgs),
    Plan(plan::PlanArgs),
    Apply(apply::ApplyArgs),
    Render(render::RenderArgs),
    Facts(facts::FactsArgs),
    Check(check::CheckArgs),
    Docs(docs::DocsArgs),
    Serve(serve::Serve),
    PushServer(push_server::PushServerArgs),
    Sign(sign::SignArgs),
    MachineController(machine_controller::MachineControllerArgs),
    Completion(completion::CompletionArgs),
}

/// Runs the command line of this process.
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            if let Some(failure) = usage::failure(&error) {
                return report(failure, LogFormat::Text);
            }
            // Help or the version, also for a command without its verb. A closed terminal is no error here.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { Exit::Configuration as u8 } else { 0 });
        }
    };
    let Cli { command, global } = cli;
    log(&global);
    let format = global.log_format;
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report(Failure::from_error(Exit::Bug, &error), format),
    };
    let (handle, cancel) = cancel::channel();
    let invocation = Invocation::new(global, cancel);
    let outcome = runtime.block_on(async {
        let signals = Signals::listen()?;
        let words: Vec<String> =
            std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        let resumed = ResumedBy::of(words.iter().map(String::as_str));
        tokio::select! {
            outcome = command.run(&invocation) => outcome,
            failure = signals.interrupted(&handle, command.interruption(), resumed) => Err(failure),
        }
    });
    invocation.recording.end(&outcome);
    let exit = match outcome {
        Ok(code) => code,
        Err(failure) => report(failure, format),
    };
    // After all else: it may take seconds where the API server does not answer.
    runtime.block_on(invocation.recording.publish());
    runtime.shutdown_background();
    exit
}

impl Command {
    fn interruption(&self) -> Interruption {
        match self {
            Self::Etcd(command) => command.interruption(),
            Self::Mirror(command) => command.interruption(),
            Self::Apply(_)
            | Self::Bootstrap(_)
            | Self::DeployNode(_)
            | Self::Expand(_)
            | Self::RemoveNode(_)
            | Self::ResetHost(_)
            | Self::Plan(_)
            | Self::Render(_)
            | Self::Facts(_)
            | Self::Serve(_)
            | Self::PushServer(_)
            | Self::Sign(_)
            | Self::MachineController(_) => Interruption::Graceful,
            Self::Bundle(_)
            | Self::Node(_)
            | Self::Host(_)
            | Self::Image(_)
            | Self::Machine(_)
            | Self::MachineDeployment(_)
            | Self::Operations(_)
            | Self::Check(_)
            | Self::Docs(_)
            | Self::Completion(_) => Interruption::Immediate,
        }
    }

    async fn run(&self, invocation: &Invocation) -> Result<ExitCode, Failure> {
        let global = &invocation.global;
        match self {
            Self::Bundle(command) => command.run(global).await,
            Self::Bootstrap(command) => command.run(invocation).await,
            Self::Node(command) => command.run(invocation).await,
            Self::DeployNode(command) => command.run(invocation).await,
            Self::Expand(command) => command.run(invocation).await,
            Self::RemoveNode(command) => command.run(invocation).await,
            Self::ResetHost(command) => command.run(invocation).await,
            Self::Host(command) => command.run().await,
            Self::Image(command) => command.run().await,
            Self::Machine(command) => command.run().await,
            Self::MachineDeployment(command) => command.run(invocation).await,
            Self::Mirror(command) => command.run(invocation).await,
            Self::Operations(command) => command.run().await,
            Self::Etcd(command) => command.run(invocation).await,
            Self::Plan(command) => command.run(invocation).await,
            Self::Apply(command) => command.run(invocation).await,
            Self::Render(command) => command.run(invocation).await,
            Self::Facts(command) => command.run(invocation).await,
            Self::Check(command) => command.run(global),
            Self::Docs(command) => command.run(),
            Self::Serve(command) => command.run(invocation).await,
            Self::PushServer(command) => command.run(invocation).await,
            Self::Sign(command) => command.run(invocation).await,
            Self::MachineController(command) => command.run(invocation).await,
            Self::Completion(command) => command.run(),
        }
    }
}

fn report(failure: Failure, format: LogFormat) -> ExitCode {
    match format {
        LogFormat::Text => failure.print(),
        LogFormat::Json => failure.print_json(clock::now()),
    }
    ExitCode::from(failure.exit as u8)
}

/// Colours if standard error is a terminal and NO_COLOR is not set (no-color.org).
fn colours() -> bool {
    use std::io::IsTerminal;
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn log(global: &Global) {
    let level = match global.verbose {
        0 => "metalform=warn",
        1 => "metalform=info",
        2 => "metalform=debug",
        _ => "trace",
    };
    let filter =
        tracing_subscriber::EnvFilter::try_from_env("METALFORM_LOG").unwrap_or_else(|_| level.into());
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(colours())
        // They are printed to standard error too, with a panic where that is full or closed.
        .log_internal_errors(false);
    match global.log_format {
        LogFormat::Text => builder.without_time().with_target(false).init(),
        LogFormat::Json => builder.json().init(),
    }
}
