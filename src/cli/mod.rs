//! One file a command; the only place that prints.

pub mod apply;
pub mod apply_plan;
pub mod bootstrap;
pub mod bundle;
pub mod check;
pub mod completion;
pub mod conduct;
pub mod deploy_node;
pub mod docs;
pub mod etcd;
pub mod facts;
pub mod failure;
pub mod host_trouble;
pub mod hosts;
pub mod interrupt;
pub mod mend;
pub mod node;
pub mod output;
pub mod plan;
pub mod plan_file;
pub mod preview;
pub mod recap;
pub mod render;
pub mod serve;
pub mod setting;
pub mod ssh_arguments;
pub mod states;
pub mod summary;
pub mod terminal;
pub mod usage;

use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use failure::{Exit, Failure};
use interrupt::{Manner, Signals};

use crate::engine::cancel::{self, Cancel};

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
    /// Say less: no progress
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Say more; may be repeated
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Read states/ and templates/ from this directory instead of those compiled in
    #[arg(long, global = true, env = "METALFORM_TREE", value_name = "DIR")]
    pub tree: Option<std::path::PathBuf>,
}

/// How progress and logs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

#[derive(Debug, Subcommand)]
enum Command {
    Bundle(bundle::BundleCommand),
    Bootstrap(bootstrap::Bootstrap),
    Node(node::NodeCommand),
    #[command(alias = "deploy_node")]
    DeployNode(deploy_node::DeployNode),
    Etcd(etcd::EtcdCommand),
    Plan(plan::Plan),
    Apply(apply::Apply),
    Render(render::Render),
    Facts(facts::FactsCommand),
    Check(check::Check),
    Docs(docs::Docs),
    Serve(serve::Serve),
    Completion(completion::Completion),
}

/// Runs the command line of this process.
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            if let Some(failure) = usage::failure(&error) {
                return report(failure, LogFormat::Text);
            }
            // Help and version: what was asked for, or what a command without its verb gets. A closed terminal
            // takes neither.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { Exit::Configuration as u8 } else { 0 });
        }
    };
    log(&cli.global);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report(Failure::from_error(Exit::Bug, &error), cli.global.log_format),
    };
    let (asker, stop) = cancel::channel();
    let manner = cli.command.manner();
    let outcome = runtime.block_on(async {
        let signals = Signals::listen()?;
        tokio::select! {
            outcome = dispatch(&cli, &stop) => outcome,
            failure = signals.interrupted(&asker, manner) => Err(failure),
        }
    });
    runtime.shutdown_background();
    match outcome {
        Ok(code) => code,
        Err(failure) => report(failure, cli.global.log_format),
    }
}

impl Command {
    fn manner(&self) -> Manner {
        match self {
            Self::Apply(apply) => apply.manner(),
            Self::Bootstrap(_) | Self::DeployNode(_) => Manner::Gradual,
            _ => Manner::AtOnce,
        }
    }
}

async fn dispatch(cli: &Cli, stop: &Cancel) -> Result<ExitCode, Failure> {
    match &cli.command {
        Command::Bundle(command) => command.run(&cli.global).await,
        Command::Bootstrap(command) => command.run(&cli.global, stop).await,
        Command::Node(command) => command.run(&cli.global).await,
        Command::DeployNode(command) => command.run(&cli.global, stop).await,
        Command::Etcd(command) => command.run(&cli.global).await,
        Command::Plan(command) => command.run(&cli.global).await,
        Command::Apply(command) => command.run(&cli.global, stop).await,
        Command::Render(command) => command.run(&cli.global).await,
        Command::Facts(command) => command.run().await,
        Command::Check(command) => command.run(&cli.global),
        Command::Docs(command) => command.run(),
        Command::Serve(command) => command.run(&cli.global, stop).await,
        Command::Completion(command) => command.run(),
    }
}

fn report(failure: Failure, format: LogFormat) -> ExitCode {
    match format {
        LogFormat::Text => failure.print(),
        LogFormat::Json => failure.print_json(setting::now()),
    }
    ExitCode::from(failure.exit as u8)
}

/// Only on a terminal, and not where NO_COLOR is set (no-color.org).
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
    let builder =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colours());
    match global.log_format {
        LogFormat::Text => builder.without_time().with_target(false).init(),
        LogFormat::Json => builder.json().init(),
    }
}
