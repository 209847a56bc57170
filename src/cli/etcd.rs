//! `metalform etcd`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::clock;
use super::etcd_recover::{EtcdRecoverArgs, EtcdRestoreArgs};
use super::failure::Failure;
use super::interrupt::Interruption;
use super::invocation::Invocation;
use super::output::{Format, document, print};
use super::ssh_arguments::SshArguments;
use crate::report::etcd_table::{HEADER, defragmented, learner_removed, rows, saved};
use crate::report::snapshot_table;
use crate::report::table::table;
use crate::service::etcd_defragment;
use crate::service::etcd_members;
use crate::service::etcd_remove_learner;
use crate::service::etcd_save_snapshots;
use crate::service::etcd_snapshot::{self, SnapshotRequest};
use crate::service::etcd_snapshots;
use crate::service::snapshot_nodes::SnapshotAccess;
use crate::workspace::layout::Layout;

/// Inspect the members of etcd, save and recover their data
#[derive(Debug, Args)]
pub struct EtcdArgs {
    #[command(subcommand)]
    command: EtcdVerb,
}

#[derive(Debug, Subcommand)]
enum EtcdVerb {
    /// List every member: voter or learner, leader, revision, database size, latency
    Members(EtcdShowArgs),
    /// List every member; exit with code 5 unless every voting member is healthy and no alarm is raised
    Health(EtcdShowArgs),
    /// Save a copy of the database to a file that does not exist yet, and verify that it is whole
    Snapshot(EtcdSnapshotArgs),
    /// Save a snapshot on this machine and copy it to another node, preferably one with etcd; verify both, and remove the
    /// oldest. The timer metalform-etcd-snapshot.timer runs it
    SaveSnapshots(EtcdSaveSnapshotsArgs),
    /// List the snapshots that `save-snapshots` keeps, the nodes that have each, and whether all of its copies are whole
    Snapshots(EtcdSnapshotsArgs),
    /// Return the free space of the databases, one member at a time and the leader last; after the alarm NOSPACE, forget
    /// old revisions before and accept writes again afterwards
    Defragment,
    /// Remove the learner of a run that is gone; refused while a run holds the lease on etcd membership
    RemoveLearner,
    /// After quorum is lost: continue with the data of one member, then let the others join it again
    ///
    /// Shows first what is lost, and asks. The data of the other members is set aside on their hosts, none is deleted. Hosts
    /// that do not answer must be off.
    ///
    /// Where etcd has quorum and no API server answers: restart those whose own member does not work with one that does, then
    /// deploy their nodes, and etcd nodes whose member is lost or missing. Members that have lost their data are replaced.
    Recover(EtcdRecoverArgs),
    /// Continue with a snapshot: on one node first, then let the others join it again
    ///
    /// Shows first what is lost, and asks. The data of all members is set aside on their hosts, none is deleted. Hosts that do
    /// not answer must be off.
    Restore(EtcdRestoreArgs),
}

/// Which snapshot to take.
#[derive(Debug, Args)]
struct EtcdSnapshotArgs {
    /// The file to create, with mode 0600: it contains every Secret of the cluster
    file: PathBuf,
    /// The client URL of the member to save; by default the newest healthy voter. Needs no quorum
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
}

/// How a snapshot is saved.
#[derive(Debug, Args)]
struct EtcdSaveSnapshotsArgs {
    /// Where etcd or the API server is still starting: how long to wait for both, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    wait: u64,
    #[command(flatten)]
    ssh: SshArguments,
}

/// How snapshots are listed.
#[derive(Debug, Args)]
struct EtcdSnapshotsArgs {
    /// Output format
    #[arg(long, short, default_value = "table")]
    output: Format,
    #[command(flatten)]
    ssh: SshArguments,
}

/// How members are shown.
#[derive(Debug, Args)]
struct EtcdShowArgs {
    /// Output format
    #[arg(long, short, default_value = "table")]
    output: Format,
}

impl EtcdArgs {
    /// How it is interrupted.
    pub fn interruption(&self) -> Interruption {
        match self.command {
            EtcdVerb::Recover(_) | EtcdVerb::Restore(_) => Interruption::Graceful,
            _ => Interruption::Immediate,
        }
    }

    /// Runs the command.
    ///
    /// # Errors
    /// When no member answers; for `health`, when one is not healthy.
    pub async fn run(&self, invocation: &Invocation) -> Result<ExitCode, Failure> {
        let (show, judged) = match &self.command {
            EtcdVerb::Members(show) => (show, false),
            EtcdVerb::Health(show) => (show, true),
            EtcdVerb::Snapshot(snapshot) => return snapshot.run().await,
            EtcdVerb::SaveSnapshots(save) => return save.run(invocation).await,
            EtcdVerb::Snapshots(list) => return list.run(invocation).await,
            EtcdVerb::Defragment => return defragment(invocation).await,
            EtcdVerb::RemoveLearner => return remove_learner(invocation).await,
            EtcdVerb::Recover(recover) => return recover.run(invocation).await,
            EtcdVerb::Restore(restore) => return restore.run(invocation).await,
        };
        let membership = etcd_members::members(&Layout::default()).await?;
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
        if judged {
            etcd_members::health(&membership)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl EtcdSnapshotArgs {
    async fn run(&self) -> Result<ExitCode, Failure> {
        let request = SnapshotRequest { file: self.file.clone(), endpoint: self.endpoint.clone() };
        let snapshot = etcd_snapshot::save(request, &Layout::default()).await?;
        print(&saved(&snapshot))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl EtcdSnapshotsArgs {
    async fn run(&self, invocation: &Invocation) -> Result<ExitCode, Failure> {
        let list = etcd_snapshots::snapshots(&access(&self.ssh, invocation)).await?;
        let rows = snapshot_table::rows(&list.copies);
        match self.output {
            Format::Json | Format::Yaml => document(self.output, &rows)?,
            Format::Name => print(&rows.iter().map(|row| format!("{}\n", row.name)).collect::<String>())?,
            Format::Table | Format::Wide => print(&snapshot_table::text(&rows))?,
        }
        warn(&list.warnings);
        Ok(ExitCode::SUCCESS)
    }
}

impl EtcdSaveSnapshotsArgs {
    async fn run(&self, invocation: &Invocation) -> Result<ExitCode, Failure> {
        let access = access(&self.ssh, invocation);
        let kept = etcd_save_snapshots::save_snapshots(&access, Duration::from_secs(self.wait)).await?;
        warn(&kept.warnings);
        print(&snapshot_table::kept(&kept))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn access(ssh: &SshArguments, invocation: &Invocation) -> SnapshotAccess {
    SnapshotAccess {
        layout: Layout::default(),
        ssh: ssh.options(),
        ssh_environment: invocation.ssh.clone(),
        clock: clock::now,
    }
}

fn warn(warnings: &[String]) {
    warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
}

async fn remove_learner(invocation: &Invocation) -> Result<ExitCode, Failure> {
    invocation.recording.begin();
    let removed = etcd_remove_learner::remove_learner(&Layout::default(), clock::now).await?;
    print(&learner_removed(&removed))?;
    Ok(ExitCode::SUCCESS)
}

async fn defragment(invocation: &Invocation) -> Result<ExitCode, Failure> {
    invocation.recording.begin();
    // A closed standard output keeps no member from being defragmented.
    let report = |event| print(&defragmented(&event)).unwrap_or_default();
    etcd_defragment::defragment(&Layout::default(), report).await?;
    Ok(ExitCode::SUCCESS)
}
