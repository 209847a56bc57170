//! `metalform mirror`.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::bundle_build::reported;
use super::clock;
use super::failure::{Exit, Failure};
use super::interrupt::Interruption;
use super::invocation::Invocation;
use super::output::{Format, document, print};
use super::serve::serve;
use crate::bundle::download::DownloadLimits;
use crate::mirror::directory::MirrorDirectory;
use crate::mirror::sync::SyncRequest;
use crate::operation::cluster_site::{REGISTRY, REGISTRY_WRITER};
use crate::report::mirror_table;
use crate::serve::http::{Content, HttpConfig};
use crate::serve::secure_listener::ListenConfig;
use crate::service::mirror_status::{check_whole, status};
use crate::service::mirror_sync;
use crate::workspace::layout::Layout;

/// Serve packages and images from more nodes than the bootstrap node: those with the label metalform.dev/mirror
#[derive(Debug, Args)]
pub struct MirrorArgs {
    #[command(subcommand)]
    command: MirrorVerb,
}

#[derive(Debug, Subcommand)]
enum MirrorVerb {
    /// Show what the bootstrap node and each mirror have; exit code 4 unless every mirror has everything
    Status {
        /// Output format
        #[arg(long, short, default_value = "table")]
        output: Format,
    },
    /// Copy what this mirror lacks from the bootstrap node, verified, and remove what that no longer has; the timer
    /// metalform-mirror-sync.timer runs it
    Sync(MirrorSyncArgs),
    /// Serve packages and images from this mirror, and those that it lacks as the bootstrap node has them; the unit
    /// metalform-mirror.service runs it
    Serve(MirrorServeArgs),
}

#[derive(Debug, Args)]
struct MirrorSyncArgs {
    /// URL of the bootstrap node's server: https://10.20.0.11:8443
    #[arg(long, value_name = "URL")]
    origin: String,
    /// PEM file of the CA that it is verified with
    #[arg(long, value_name = "FILE")]
    ca: PathBuf,
    /// Directory of the copies
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,
    /// Number of downloads side by side
    #[arg(long, value_name = "N", default_value = "4")]
    downloads: NonZeroUsize,
}

#[derive(Debug, Args)]
struct MirrorServeArgs {
    /// Listen on this address and port
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// Directory of the copies
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,
    /// URL of the bootstrap node's server: https://10.20.0.11:8443
    #[arg(long, value_name = "URL")]
    origin: String,
    /// PEM file of the CA that it is verified with
    #[arg(long, value_name = "FILE")]
    ca: PathBuf,
    /// PEM file of the server's certificate; read again when it is replaced
    #[arg(long, value_name = "FILE")]
    certificate: PathBuf,
    /// PEM file of its private key; read again when it is replaced
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
}

impl MirrorArgs {
    /// What a signal does.
    pub fn interruption(&self) -> Interruption {
        match self.command {
            MirrorVerb::Serve(_) => Interruption::Graceful,
            MirrorVerb::Status { .. } | MirrorVerb::Sync(_) => Interruption::Immediate,
        }
    }

    /// Runs the command.
    ///
    /// # Errors
    /// When a mirror is not whole, cannot be made so, or cannot be served.
    pub async fn run(&self, invocation: &Invocation) -> Result<ExitCode, Failure> {
        match &self.command {
            MirrorVerb::Status { output } => show_status(*output).await,
            MirrorVerb::Sync(arguments) => arguments.run(invocation).await,
            MirrorVerb::Serve(arguments) => serve(&arguments.config()?, invocation).await,
        }
    }
}

async fn show_status(output: Format) -> Result<ExitCode, Failure> {
    let servers = status(&Layout::default()).await?;
    match output {
        Format::Json | Format::Yaml => document(output, &servers)?,
        Format::Name => {
            print(&servers.iter().map(|server| format!("{}\n", server.node)).collect::<String>())?;
        }
        Format::Table | Format::Wide => print(&mirror_table::text(&servers))?,
    }
    check_whole(&servers)?;
    Ok(ExitCode::SUCCESS)
}

impl MirrorSyncArgs {
    async fn run(&self, invocation: &Invocation) -> Result<ExitCode, Failure> {
        let request = SyncRequest {
            origin: self.origin.clone(),
            authority: authority(&self.ca)?,
            directory: MirrorDirectory::at(&self.directory),
            registry: PathBuf::from(REGISTRY_WRITER),
            downloads: DownloadLimits::new(self.downloads),
            clock: clock::now,
        };
        let layout = Layout::default();
        let synced =
            reported(&invocation.global, async |events| mirror_sync::run(&layout, &request, events).await);
        let synced = synced.await?;
        let copied = synced.copied.iter().map(|item| format!("{item} copied\n"));
        let removed = synced.removed.iter().map(|item| format!("{item} removed\n"));
        print(&copied.chain(removed).collect::<String>())?;
        Ok(ExitCode::SUCCESS)
    }
}

fn authority(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path)
        .map_err(|error| Failure::new(Exit::Configuration, format!("{}: {error}", path.display())))
}

impl MirrorServeArgs {
    fn config(&self) -> Result<HttpConfig, Failure> {
        Ok(HttpConfig {
            listen: ListenConfig {
                listen: self.listen,
                certificate: self.certificate.clone(),
                key: self.key.clone(),
                clock: clock::now,
            },
            content: Content::Mirror {
                directory: MirrorDirectory::at(&self.directory),
                origin: self.origin.clone(),
                authority: authority(&self.ca)?,
            },
            registry: REGISTRY,
        })
    }
}
