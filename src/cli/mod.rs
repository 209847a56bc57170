//! One file a command; the only place that prints.

pub mod bootstrap;
pub mod bundle;
pub mod completion;
pub mod deploy_node;
pub mod etcd;
pub mod failure;
pub mod node;
pub mod output;
pub mod serve;
pub mod setting;
pub mod summary;

use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use failure::{Exit, Failure};

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
    Serve(serve::Serve),
    Completion(completion::Completion),
}

/// Runs the command line of this process.
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are what was asked for; anything else is a usage error. A closed terminal
            // takes neither.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { Exit::Configuration as u8 } else { 0 });
        }
    };
    log(&cli.global);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report(Failure::from_error(Exit::Bug, &error)),
    };
    let outcome = runtime.block_on(async {
        tokio::select! {
            outcome = dispatch(&cli) => outcome,
            // What is under way on a host ends with its connection; the next run converges.
            _ = tokio::signal::ctrl_c() => Err(Failure::new(Exit::Interrupted, "interrupted; the same command goes on from here")),
        }
    });
    runtime.shutdown_background();
    match outcome {
        Ok(code) => code,
        Err(failure) => report(failure),
    }
}

async fn dispatch(cli: &Cli) -> Result<ExitCode, Failure> {
    match &cli.command {
        Command::Bundle(command) => command.run(&cli.global).await,
        Command::Bootstrap(command) => command.run(&cli.global).await,
        Command::Node(command) => command.run(&cli.global).await,
        Command::DeployNode(command) => command.run(&cli.global).await,
        Command::Etcd(command) => command.run(&cli.global).await,
        Command::Serve(command) => command.run(&cli.global).await,
        Command::Completion(command) => command.run(),
    }
}

fn report(failure: Failure) -> ExitCode {
    failure.print();
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
